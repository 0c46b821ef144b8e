#!/usr/bin/env bash
# Five models on this machine's accelerator, in every configuration, in under eight minutes. Measures with the torch
# it finds; installs nothing, changes no setting of the device. Journals and summary.md go to $OUT.
#
#     benchmarks/gpu_check.sh
#
#   PYTHON          interpreter that has torch               python3
#   DEVICE          profile, see `bench list devices`        auto
#   SECONDS_LIMIT   most seconds in all                      460
#   OUT             folder for what is found                 ./gpu_check
#   SUITE, MODELS   what is measured; the models in order    timm, five of them that differ
#   BACKEND         of torch.compile                         inductor
#   SAMPLING_S      most seconds of sampling per case        2
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "gpu_check: $python is older than Python 3.11, or is not there. Set PYTHON." >&2
    exit 1
}
exec "$python" -m benchmarks.gpu_check

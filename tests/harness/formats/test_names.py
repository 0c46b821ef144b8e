"""File names by the grammar of the PyTorch runner, read from the right with closed lists."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.formats import names
from harness.formats.facts import Where
from harness.record import Configuration
from suites.spec import MODES, Mode, Precision

TRAINING, INFERENCE = Mode.TRAINING, Mode.INFERENCE


@pytest.mark.parametrize(
    ("name", "said", "target"),
    [
        (
            "inductor_with_cudagraphs_freezing_timm_models_bfloat16_inference_cuda_h100_performance.csv",
            {
                "suite": "timm",
                "precision": Precision.BF16,
                "mode": INFERENCE,
                "device": "cuda",
                "product": "h100",
                "backend": "inductor",
                "variant": "with_cudagraphs_freezing",
            },
            "performance",
        ),
        (
            "inductor_no_cudagraphs_torchbench_amp_training_cpu_x86_zen_accuracy.csv",
            {
                "suite": "torchbench",
                "precision": Precision.AMP,
                "mode": TRAINING,
                "device": "cpu",
                "product": "x86_zen",
                "backend": "inductor",
                "variant": "no_cudagraphs",
            },
            "accuracy",
        ),
        (
            "inductor_dynamic_huggingface_float32_training_cuda_performance.json",
            {
                "suite": "huggingface",
                "precision": Precision.FP32,
                "mode": TRAINING,
                "device": "cuda",
                "backend": "inductor",
                "variant": "dynamic",
                "dynamic": True,
            },
            "performance",
        ),
        (
            "inductor_max_autotune_torchbench_quant_inference_cuda_a100_performance.csv",
            {
                "suite": "torchbench",
                "precision": Precision.UNKNOWN,
                "mode": INFERENCE,
                "device": "cuda",
                "product": "a100",
                "backend": "inductor",
                "variant": "max_autotune quant",
            },
            "performance",
        ),
        ("aot_eager_timm_models_notset_training_cuda_accuracy.csv.gz", {"backend": "aot_eager"}, "accuracy"),
        (
            "dynamo_eager_huggingface_inference.csv",
            {"suite": "huggingface", "mode": INFERENCE, "backend": "eager"},
            None,
        ),
        (
            "cpu_inductor_amp_freezing_torchbench_inference.csv",
            {
                "suite": "torchbench",
                "mode": INFERENCE,
                "device": "cpu",
                "precision": Precision.AMP,
                "backend": "inductor",
                "variant": "freezing",
            },
            None,
        ),
        ("rolling_inductor_timm_models_training.csv", {"backend": "inductor", "variant": "rolling"}, None),
        ("accuracy.csv", {}, "accuracy"),
        ("results.csv", {}, None),
    ],
)
def test_what_a_name_says(name: str, said: dict[str, Any], target: str | None) -> None:
    """Suite, format, mode, device, machine, backend, variant and target stand in a name; nothing else is made up."""
    found = names.of(name)

    assert said == {field: getattr(found.where, field) for field in said}
    assert target == found.target
    if not said:
        assert Where() == found.where


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (
            "dated/inductor_timm_dynamic_training/2023-05-18_dafa009c3c.csv",
            {"suite": "timm", "mode": TRAINING, "dynamic": True, "commit": "dafa009c3c"},
        ),
        ("x/expected_coverage_2022-09-08_4943b43a9a.csv", {"suite": None, "commit": "4943b43a9a"}),
        ("inductor_torchbench_training/pytorch_013fefc568.csv", {"suite": "torchbench", "commit": "013fefc568"}),
        ("torchbench_userbenchmark/console_2023-12-05.csv", {"suite": None, "product": None, "commit": None}),
        ("expected_ci_perf_inductor_torchbench_2023-01-30_2b267fa7f2.csv", {"suite": "torchbench", "variant": None}),
    ],
)
def test_dates_and_commits(path: str, said: dict[str, Any]) -> None:
    """A date and a commit at the end of a name are its run's; the folder may say the rest."""
    where = names.of(path).where

    assert said == {field: getattr(where, field) for field in said}


def test_moment_of_a_name() -> None:
    """A day is its first moment in UTC; a userbenchmark writes the second."""
    assert datetime(2023, 5, 18, tzinfo=UTC) == names.of("a/2023-05-18_dafa009c3c.csv").where.time
    assert datetime(2024, 3, 7, 8, 9, 10, tzinfo=UTC) == names.of("metrics-20240307080910.json").where.time


def test_files_of_one_upload_share_a_key() -> None:
    """Suite, format, mode and target do not tell uploads apart; variant, device, machine and date do."""
    same = [
        "inductor_no_cudagraphs_timm_models_amp_training_cuda_a100_accuracy.csv",
        "inductor_no_cudagraphs_torchbench_float32_inference_cuda_a100_performance.csv",
        "inductor_no_cudagraphs_torchbench_float32_inference_cuda_a100_performance_compilation_metrics.csv",
    ]
    others = [
        "inductor_with_cudagraphs_timm_models_amp_training_cuda_a100_accuracy.csv",
        "inductor_no_cudagraphs_timm_models_amp_training_cuda_h100_accuracy.csv",
        "inductor_no_cudagraphs_timm_models_amp_training_cpu_a100_accuracy.csv",
        "inductor_no_cudagraphs_timm_models_amp_training_cuda_a100_accuracy_2023-05-18_dafa009c3c.csv",
    ]

    assert 1 == len({names.of(name).key for name in same})
    assert 5 == len({names.of(name).key for name in [same[0], *others]})


@given(
    suite=st.sampled_from(["timm", "torchbench", "huggingface"]),
    mode=st.sampled_from([*MODES, Mode.UNKNOWN]),
    precision=st.sampled_from(Precision),
    device=st.sampled_from(["cuda-a100", "cpu-x86_zen", "cuda", "unknown"]),
    backend=st.sampled_from(["inductor", "aot_eager", "eager", "cudagraphs", "unknown"]),
    variant=st.sampled_from([None, "no_cudagraphs", "with_cudagraphs_freezing", "dynamic"]),
    target=st.sampled_from(["accuracy", "performance"]),
)
def test_written_names_read_back(
    suite: str, mode: Mode, precision: Precision, device: str, backend: str, variant: str | None, target: str
) -> None:
    """A name that we write says, when it is read, what it was made of."""
    known = backend in ("inductor", "aot_eager", "eager")
    variant = variant if known else None
    configuration = Configuration(device=device, mode=mode, precision=precision, backend=backend, variant=variant)
    kind = device.partition("-")[0]

    found = names.of(names.written(configuration, suite, kind, target) + ".csv")

    assert (suite, mode, precision) == (found.where.suite, found.where.mode, found.where.precision)
    assert (target, variant) == (found.target, found.where.variant)
    assert device == "-".join(filter(None, (found.where.device or "unknown", found.where.product)))
    assert backend == (found.where.backend or "unknown")


def test_options_of_ours_are_words_of_the_variant() -> None:
    """Two configurations of ours that differ never share a file."""
    plain = {"device": "cpu", "mode": INFERENCE, "precision": Precision.FP32}
    differing: list[dict[str, Any]] = [
        {},
        {"tf32": True},
        {"dynamic": True},
        {"deterministic": True},
        {"compile_mode": "max-autotune"},
        {"optimizer": "sgd"},
        {"preset": "small"},
        {"attention": "eager"},
        {"compile_scope": "step"},
        {"backend": "aot_eager"},
    ]
    written = {
        names.written(Configuration.model_validate({**plain, **each}), "timm", "cpu", "accuracy") for each in differing
    }

    assert len(differing) == len(written)

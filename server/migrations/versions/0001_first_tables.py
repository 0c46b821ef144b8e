"""First tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "configuration",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("precision", sa.String(length=8), nullable=False),
        sa.Column("backend", sa.Text(), nullable=False),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_configuration"),
    )
    op.create_table(
        "environment",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("hard", sa.String(length=16), nullable=False),
        sa.Column("soft", sa.String(length=16), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("cpu", sa.Text(), nullable=False),
        sa.Column("torch", sa.Text(), nullable=True),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_environment"),
    )
    op.create_index("ix_environment_hard", "environment", ["hard"])
    op.create_table(
        "case",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("configuration_id", sa.String(length=16), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("batch_size", sa.Integer(), nullable=True),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["configuration_id"], ["configuration.id"], name="fk_case_configuration_id"),
        sa.PrimaryKeyConstraint("id", name="pk_case"),
    )
    op.create_index("ix_case_configuration_id", "case", ["configuration_id"])
    op.create_index("ix_case_suite_model", "case", ["suite", "model"])
    op.create_table(
        "run",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("environment_id", sa.String(length=16), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("profile", sa.JSON(), nullable=False),
        sa.Column("protocol", sa.JSON(), nullable=False),
        sa.Column("last_start_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_reason", sa.String(length=16), nullable=True),
        sa.ForeignKeyConstraint(["environment_id"], ["environment.id"], name="fk_run_environment_id"),
        sa.PrimaryKeyConstraint("id", name="pk_run"),
    )
    op.create_index("ix_run_started_at", "run", ["started_at"])
    op.create_table(
        "progress",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("case_id", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=True),
        sa.Column("stage_since", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name="fk_progress_case_id"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_progress_run_id"),
        sa.PrimaryKeyConstraint("run_id", "case_id", name="pk_progress"),
    )
    op.create_table(
        "result",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("case_id", sa.String(length=16), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("outcome", sa.String(length=24), nullable=False),
        sa.Column("stage", sa.String(length=16), nullable=True),
        sa.Column("side", sa.String(length=16), nullable=True),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("valid", sa.Boolean(), nullable=False),
        sa.Column("invalid_why", sa.Text(), nullable=True),
        sa.Column("emulated", sa.Boolean(), nullable=False),
        sa.Column("flags", sa.JSON(), nullable=False),
        sa.Column("reference", sa.String(length=16), nullable=True),
        sa.Column("speedup", sa.Double(), nullable=True),
        sa.Column("speedup_low", sa.Double(), nullable=True),
        sa.Column("speedup_high", sa.Double(), nullable=True),
        sa.Column("speedup_n", sa.Integer(), nullable=True),
        sa.Column("speedup_method", sa.Text(), nullable=True),
        sa.Column("no_estimate", sa.Text(), nullable=True),
        sa.Column("eager_s", sa.Double(), nullable=True),
        sa.Column("compiled_s", sa.Double(), nullable=True),
        sa.Column("compile_wall_s", sa.Double(), nullable=True),
        sa.Column("compile_cpu_s", sa.Double(), nullable=True),
        sa.Column("graphs", sa.Integer(), nullable=True),
        sa.Column("graph_breaks", sa.Integer(), nullable=True),
        sa.Column("recompiles", sa.Integer(), nullable=True),
        sa.Column("break_even_steps", sa.Double(), nullable=True),
        sa.Column("eager_peak_bytes", sa.BigInteger(), nullable=True),
        sa.Column("compiled_peak_bytes", sa.BigInteger(), nullable=True),
        sa.Column("memory_ratio", sa.Double(), nullable=True),
        sa.Column("document", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name="fk_result_case_id"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_result_run_id"),
        sa.PrimaryKeyConstraint("id", name="pk_result"),
    )
    op.create_index("ix_result_case_id", "result", ["case_id"])
    op.create_index("ix_result_run_id_case_id_attempt", "result", ["run_id", "case_id", "attempt"], unique=True)
    op.create_table(
        "summary",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("suite", sa.Text(), nullable=False),
        sa.Column("configuration_id", sa.String(length=16), nullable=False),
        sa.Column("planned", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("passed", sa.Integer(), nullable=False),
        sa.Column("missing", sa.Integer(), nullable=False),
        sa.Column("emulated", sa.Integer(), nullable=False),
        sa.Column("unchecked", sa.Integer(), nullable=False),
        sa.Column("outcomes", sa.JSON(), nullable=False),
        sa.Column("speedup_geomean", sa.Double(), nullable=True),
        sa.Column("speedup_geomean_low", sa.Double(), nullable=True),
        sa.Column("speedup_geomean_high", sa.Double(), nullable=True),
        sa.Column("speedup_geomean_n", sa.Integer(), nullable=True),
        sa.Column("speedup_geomean_method", sa.Text(), nullable=True),
        sa.Column("no_geomean", sa.Text(), nullable=True),
        sa.Column("left_out", sa.JSON(), nullable=False),
        sa.Column("compile_wall_s_median", sa.Double(), nullable=True),
        sa.Column("memory_ratio_median", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["configuration_id"], ["configuration.id"], name="fk_summary_configuration_id"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_summary_run_id"),
        sa.PrimaryKeyConstraint("run_id", "suite", "configuration_id", name="pk_summary"),
    )
    op.create_table(
        "planned",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("case_id", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("module", sa.Text(), nullable=False),
        sa.Column("tolerance", sa.Double(), nullable=False),
        sa.Column("timeout_s", sa.Double(), nullable=False),
        sa.Column("accuracy_batch", sa.Integer(), nullable=True),
        sa.Column("skip", sa.Text(), nullable=True),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("result_id", sa.String(length=36), nullable=True),
        sa.ForeignKeyConstraint(["case_id"], ["case.id"], name="fk_planned_case_id"),
        sa.ForeignKeyConstraint(["result_id"], ["result.id"], name="fk_planned_result_id"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_planned_run_id"),
        sa.PrimaryKeyConstraint("run_id", "case_id", name="pk_planned"),
    )
    op.create_index("ix_planned_case_id", "planned", ["case_id"])
    op.create_index("ix_planned_run_id_position", "planned", ["run_id", "position"])
    op.create_table(
        "samples",
        sa.Column("result_id", sa.String(length=36), nullable=False),
        sa.Column("pairs", sa.Integer(), nullable=False),
        sa.Column("eager_s", sa.LargeBinary(), nullable=False),
        sa.Column("compiled_s", sa.LargeBinary(), nullable=False),
        sa.Column("eager_first", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["result_id"], ["result.id"], name="fk_samples_result_id"),
        sa.PrimaryKeyConstraint("result_id", name="pk_samples"),
    )


def downgrade() -> None:
    for table in ("samples", "planned", "summary", "result", "progress", "run", "case", "environment", "configuration"):
        op.drop_table(table)

# make demo   set up and run the quickstart sweep
# make test   set up and pass the tests
# make bench  rows a second on this machine
# make ray    sweeps on a Ray cluster of two workers (minutes)
# make kill   kill sweeps at 20 random moments, resume them, compare bytes (minutes)
# make crosscheck   four ways to the paper's optima (minutes)
# make autotuners   the hooks of wsjax.triton with the real Triton and Kernel Tuner
# make plan-curve   error after planned rows and after random ones (needs TABLES; minutes)
# make few-rows     error after fits of 0 to 200 rows (needs TABLES; minutes)
# make browser   use the pages of reports in a browser (needs chromium; minutes)
# make accuracy   errors on held-out problems, and picked kernels against cuBLAS (needs TABLES; minutes)
# make calibrate TABLES=DIR   remake the H200 calibrations from the measured tables in DIR
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test bench ray kill crosscheck autotuners browser plan-curve few-rows accuracy calibrate clean

demo: .venv/ready
	$(BIN)/wsjax sweep sweeps/quickstart.toml

test: .venv/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/pytest -q -n 2 --dist loadfile

bench: .venv/ready-dev
	$(BIN)/python tests/slow/bench.py

ray: .venv/ready-dev
	$(BIN)/python -m pip install --quiet --group ray
	$(BIN)/pytest -q tests/slow/ray_cluster.py

kill: .venv/ready-dev
	$(BIN)/python tests/slow/kill.py

crosscheck: .venv/ready-dev
	PYTHONPATH=tests/support $(BIN)/python tests/slow/crosscheck.py

autotuners: .venv/ready-dev
	$(BIN)/python -m pip install --quiet --group autotuners
	$(BIN)/python tests/slow/autotuners.py

browser: .venv/ready-dev
	$(BIN)/python -m pip install --quiet --group browser
	PYTHONPATH=tests/support $(BIN)/python tests/slow/browser.py

TABLES ?= ../shared/data/h200
H200 := wsjax/hardware/h200
CUTLASS := $(TABLES)/cutlass_ws.csv.gz $(TABLES)/cutlass_ws_more.csv.gz
KINDS := $(TABLES)/cutlass_ws_2.csv.gz $(TABLES)/cutlass_fp8.csv.gz $(TABLES)/cutlass_cluster.csv.gz $(TABLES)/cutlass_batched.csv.gz $(TABLES)/cutlass_splitk.csv.gz
KINDS_FREE := spill_throughput_bytes_per_us,promotion_us,promotion_hidden,multicast_cost,cluster_latency_us,launch_cluster_us,launch_divided_us,reduction_us,reduction_throughput_bytes_per_us,reductions_throughput_bytes_per_us
FIX := load_startup_us,compute_startup_us,sync_us,clock_rise
calibrate: .venv/ready
	$(BIN)/wsjax calibrate $(TABLES)/gemm_ws.csv.gz --fix $(FIX) --residual \
		--start $(H200)-datasheet.toml --out $(H200)-gluon.toml
	$(BIN)/wsjax calibrate $(CUTLASS) --fix $(FIX) \
		--start sweeps/h200-cutlass-start.toml --out $(H200)-cutlass.toml
	$(BIN)/wsjax calibrate $(CUTLASS) $(KINDS) --free $(KINDS_FREE) --residual \
		--start $(H200)-cutlass.toml --out $(H200)-cutlass.toml

accuracy: .venv/ready-dev
	$(BIN)/python tests/slow/accuracy.py $(TABLES)

plan-curve: .venv/ready-dev
	$(BIN)/python tests/slow/plan_curve.py $(TABLES)/gemm_ws.csv.gz

few-rows: .venv/ready-dev
	$(BIN)/python tests/slow/few_rows.py $(TABLES)/gemm_ws.csv.gz

.venv/ready: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

.venv/ready-dev: .venv/ready
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

clean:
	rm -rf .venv results/*

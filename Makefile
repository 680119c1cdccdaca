# Export Lab. `make` lists what there is; each target sets up what it needs.
PYTHON ?=
BIN := .venv/bin
READY := .venv/.ready
JOBS ?= auto
BOTH_MODES ?= torch.export,to_onnx,dynamo,torchscript
MOVING ?= openvino,executorch,transformers
TIMEOUT ?= 120
COMPILED ?= mlp,batch_norm,same_tensor_thrice,tied_embedding,branch_on_batch,cond_on_value,scan_sum,two_dims,half_of_the_rows,positions_of_positives,index_update,counter,half_precision_block,gru_time_first,causal_attention,pooled_convnet,distilbert,llama

# One thread each: pages and tests run side by side, and times taken with more threads than free cores say nothing.
site preview page test test-landing test-all matrix matrix-cases matrix-check matrix-moving previous notebooks bench: export OMP_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help site preview page test test-landing test-all test-oldest notebooks lab bench matrix matrix-cases matrix-check matrix-moving previous web headers lint clean constraints

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

$(READY): requirements.txt constraints.txt pyproject.toml setup.sh tools/find_python.sh
	@PYTHON="$(PYTHON)" sh setup.sh

site: $(READY)  ## execute every recipe and error page, render the site to build/site/
	@$(BIN)/python tools/render_site.py $(SPHINXOPTS)
	@echo "The site is at build/site/index.html: open it in a browser, or run: $(BIN)/python -m http.server -d build/site"

preview: $(READY)  ## render the site to build/preview/site/ from stored results, in a minute or two; nothing is executed
	@$(BIN)/python tools/preview.py -q
	@echo "The preview is at build/preview/site/index.html"

page: $(READY)  ## render one page to build/page/ (PAGE=gallery/torch_onnx/cond.py; WATCH=1: again at each change, in a preview that reloads)
	@$(BIN)/python tools/one_page.py $(PAGE) $(if $(WATCH),--watch)

test: $(READY)  ## run the fast tests and two lessons (tier 0: 5 minutes on two cores); seconds when nothing has changed
	@$(BIN)/python tools/run_tests.py --jobs $(JOBS) 0

test-landing: $(READY)  ## run what CI runs besides: captures, verify, fuzzers, a quarter of the operators row by row and of the lessons (tier 1)
	@$(BIN)/python tools/run_tests.py --jobs $(JOBS) 1

test-all: $(READY)  ## run every test and lesson, recipes as notebooks, and the whole matrix (hours)
	@$(BIN)/python tools/run_tests.py --jobs $(JOBS) 0 1 2
	@$(BIN)/python tools/expected_matrix.py --check

notebooks: $(READY)  ## execute the lessons and store their .ipynb pairs
	@$(BIN)/python tools/store_pairs.py

lab: $(READY)  ## open the lessons in JupyterLab
	@$(BIN)/jupyter lab tutorials

bench: $(READY)  ## run the benchmarks into build/bench/: a page, figures, times (FULL=1: the whole measurement; BENCH="latency memory": these)
	@$(BIN)/python tools/bench_pages.py $(BENCH) $(if $(FULL),--full)

matrix: $(READY)  ## sweep every case by every exporter, store the outcomes (an hour or more; the same call goes on where it stopped)
	@mkdir -p build docs/data
	@$(BIN)/exportlab sweep --all --exporters $(BOTH_MODES),$(MOVING) --modes dynamic --timeout $(TIMEOUT) --output build/matrix.jsonl
	@$(BIN)/exportlab sweep --all --exporters $(BOTH_MODES) --modes static --timeout $(TIMEOUT) --output build/matrix.jsonl
	@$(BIN)/exportlab sweep --cases $(COMPILED) --exporters aoti --timeout $(TIMEOUT) --output build/matrix.jsonl
	@cp build/matrix.jsonl docs/data/matrix.new && mv docs/data/matrix.new docs/data/matrix.jsonl
	@$(BIN)/python tools/expected_matrix.py --write

matrix-cases: $(READY)  ## sweep some cases by every exporter, and store their outcomes (CASES=name,name; about a minute each)
	@rm -f build/cases.jsonl
	@$(BIN)/exportlab sweep --cases $(CASES) --exporters $(BOTH_MODES),$(MOVING) --modes dynamic --timeout $(TIMEOUT) --output build/cases.jsonl
	@$(BIN)/exportlab sweep --cases $(CASES) --exporters $(BOTH_MODES) --modes static --timeout $(TIMEOUT) --output build/cases.jsonl
	@$(BIN)/python tools/expected_matrix.py --store build/cases.jsonl

matrix-check: $(READY)  ## sweep every case again, and name every outcome that is not the stored one
	@$(BIN)/python tools/expected_matrix.py --check

# All cases, each in one mode, by our own exporter, which changes most. More would not fit into the time that CI has.
test-oldest: $(READY)  ## run what CI runs with the newest torch on the oldest supported one (nightly; 10 minutes)
	@.ci/torch 2.10.0

matrix-moving: $(READY)
	@$(BIN)/python tools/expected_matrix.py --check --moving --exporters to_onnx

previous: $(READY)  ## sweep with another release of a package, for what changed since (PACKAGE=transformers VERSION=5.22.2; CASES=, ALSO=)
	@$(BIN)/python tools/previous.py $(PACKAGE) $(VERSION) $(if $(CASES),--cases $(CASES)) $(if $(ALSO),--also $(ALSO))

web:  ## fetch ONNX Runtime for browsers, which runs models in pages, and axe-core, which checks pages (needs npm, and the network)
	@npm install --ignore-scripts --no-audit --no-fund --silent --prefix build/web onnxruntime-web@1.30.0 axe-core@4.14.1

headers:  ## fetch the C++ headers of ONNX Runtime, which its Python package leaves out (needs apt-get, and the network)
	@sh tools/onnxruntime_headers.sh

lint: $(READY)  ## check the style of code and prose, the layers of imports, and the types
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/lint-imports && $(BIN)/mypy && $(BIN)/python tools/tics.py

constraints: $(READY)  ## pin what the requirements bring along, after changing one
	@$(BIN)/pip freeze --exclude-editable | sed 's/+cpu$$//' > constraints.new && mv constraints.new constraints.txt

clean:  ## remove what was built, the environment included
	rm -rf .venv build generated

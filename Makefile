# tcpwhy: why is this TCP transfer slow? Every target does its own set-up (scripts/setup.sh).

CARGO ?= cargo
PYTHON ?= python3
TARGET := $(or $(CARGO_TARGET_DIR),target)
BIN := $(TARGET)/release/tcpwhy
SECONDS_EACH ?= 300

.PHONY: help demo build test check attack page-gigabyte cases accuracy weak-claims meaning matrix two-taps model-check model-fixes model-flights predict-real forecast overhead mcp-gigabyte bench growth python test-python test-fleet many profiled package static advisories api tables-size fuzz mutants docs docs-figures web screenshots bpf install clean

help:
	@echo 'make demo      explain a bundled capture'
	@echo 'make test      everything that must hold: code, captures, accuracy, a short fuzz run'
	@echo 'make check     what to run before a commit: format, lints, documentation, scripts'
	@echo 'make accuracy  how often the verdict is right on captures whose causes are known, made cases included (ARGS=...)'
	@echo 'make cases     write the made cases to target/cases (docs/cases.md)'
	@echo 'make weak-claims  claims on weak grounds in ../shared/captures, beside those of docs/weak_claims.json (ARGS=...)'
	@echo 'make meaning   invariants of meaning on ../shared/captures, beside docs/meaning.json (ARGS=...)'
	@echo 'make matrix    the lab makes 522 labelled captures in target/matrix (root, a quarter of an hour); accuracy on them'
	@echo 'make lab-drawn  experiments drawn by a seed, on the lab: SEED=... COUNT=60 (root; some seconds each); accuracy on them'
	@echo 'make two-taps  both taps of each run beside each alone: of the matrix if it was made, else of captures/lab (ARGS=--verbose)'
	@echo 'make accuracy-record  record beside the matrix: what explain says of its files and of bare captures (root; half an hour; ARGS=...)'
	@echo 'make accuracy-programs  nginx, databases, proxies, ...: bare captures beside what record says of the same runs (root; two minutes)'
	@echo 'make model-check  predicted beside measured beside published (ARGS=...)'
	@echo 'make model-fixes  fixes: predicted beside measured (ARGS=...; --measure makes the runs anew, as root)'
	@echo 'make forecast  what run says of 40 ms beside 40 ms, two dozen programs (nginx, databases, ...; some minutes)'
	@echo 'make overhead  what run adds to a command, and its distance beside the lab (some minutes; root for the last)'
	@echo 'make mcp-gigabyte  answers of tcpwhy mcp about a capture of 1 GB (a minute, and that much in the temporary folder)'
	@echo 'make predict-real predicted beside nginx and curl over TLS, 80 ms apart (root; half a minute)'
	@echo 'make model-flights  the model beside captures of the lab, flight by flight (ARGS=...)'
	@echo 'make python    the wheel of the Python package, in target/wheels; make test-python: its tests, on pandas, Polars, DuckDB'
	@echo 'make test-fleet  the package inside Spark and Ray, a worker killed half way (some minutes; 900 MB; Java 17)'
	@echo 'make many      10,000 small captures against one file, a shell loop, and tshark with pyarrow (ARGS=...)'
	@echo 'make profiled  the program as releases have it, compiled twice and laid out anew: a tenth faster (target/profiled/tcpwhy; twelve minutes)'
	@echo 'make package   a .deb and a list of parts (SBOM) in target/package (docs/release.md)'
	@echo 'make static    the program without shared libraries, in target/static; fails if it needs any'
	@echo 'make advisories  crates with advisories, by a copy of the RustSec data base (DB=FOLDER)'
	@echo 'make api       the list of public items of the crate tcpwhy-library; refuses where a version must be raised first'
	@echo 'make tables-size  bytes of an exchange in the tables of --parquet, on a million of them'
	@echo 'make bench     speed and memory against tcpdump, tcptrace and tshark (ARGS=--quick)'
	@echo 'make growth    time by the number of connections and of packets: docs/growth.svg (minutes, on a quiet machine)'
	@echo 'make fuzz      $(SECONDS_EACH) seconds for each fuzz target (SECONDS_EACH=...)'
	@echo 'make mutants   how many small faults the tests find (ARGS=--crate analysis; hours; needs cargo-mutants)'
	@echo 'make attack    what a stranger could do to tcpwhy serve, for half a minute'
	@echo 'make page-gigabyte  the page and the server on captures of 1 GB, beside explain (minutes, and that much in the temporary folder)'
	@echo 'make docs      the output in README.md from a run of the demo'
	@echo 'make docs-figures  the figures in docs/figures from bundled captures'
	@echo 'make web       the page of --html, from web/ (needs Node.js)'
	@echo 'make screenshots  what the page looks like, in docs/screenshots (needs Chromium, Node.js, poppler-utils)'
	@echo 'make bpf       the programs of tcpwhy watch and record in the kernel, from crates/live/bpf (needs clang and llvm)'
	@echo 'make watch-scenarios  what tcpwhy watch says beside the lab'"'"'s runs, in docs/watch.md (root; half an hour)'
	@echo 'make watch-costs  what tcpwhy watch costs, in docs/watch.md (root; nginx and wrk; half an hour)'
	@echo 'make watch-memory  memory of tcpwhy watch beside nginx and wrk at full rate (root; ten minutes; MINUTES=...)'
	@echo 'make install   into the directory of cargo install'
	@echo 'make clean     remove what was built'

build:
	$(CARGO) build --release --locked --quiet

# Without the terminal view, and with less optimisation than `make install`: a first look should not wait for those.
demo:
	@scripts/setup.sh demo
	@echo 'building (a minute or two on two cores, the first time)'
	@$(CARGO) build --profile quick --locked --no-default-features -p tcpwhy
	@mkdir -p demo-output
	@$(TARGET)/quick/tcpwhy explain captures/zeek__smtp_bdat.pcap --html demo-output/report.html
	@echo
	@echo 'and a program that runs now: tcpwhy run -- examples/length-prefix/client.py'
	@$(TARGET)/quick/tcpwhy run --quiet -- $(PYTHON) examples/length-prefix/client.py || true

test:
	@scripts/setup.sh test
	@$(PYTHON) scripts/test.py $(ARGS)

check:
	@scripts/setup.sh test
	@$(PYTHON) scripts/test.py --only '^(format|lints|documentation|scripts|structure|web: style)' $(ARGS)

cases: build
	@$(PYTHON) scripts/cases.py --bin $(BIN) $(TARGET)/cases

accuracy: cases
	@$(PYTHON) scripts/accuracy.py --bin $(BIN) --cases $(TARGET)/cases --families $(ARGS)

weak-claims: build
	@$(PYTHON) scripts/weak_claims.py --bin $(BIN) --baseline docs/weak_claims.json $(ARGS)

meaning: build
	@$(PYTHON) scripts/meaning.py --bin $(BIN) --baseline docs/meaning.json $(ARGS)

matrix: build
	@$(BIN) lab dataset $(TARGET)/matrix > $(TARGET)/matrix.log || { tail -3 $(TARGET)/matrix.log; exit 1; }
	@$(PYTHON) scripts/accuracy.py --bin $(BIN) --folder $(TARGET)/matrix $(ARGS)

# What is in its folder stays. Seeds that begin with `learn` may be looked at, others are only scored.
.PHONY: lab-drawn
lab-drawn: build
	@$(PYTHON) scripts/lab_drawn.py --bin $(BIN) --count $(or $(COUNT),60) $(SEED) $(TARGET)/lab-drawn-$(SEED)
	@$(PYTHON) scripts/accuracy.py --bin $(BIN) --folder $(TARGET)/lab-drawn-$(SEED) $(ARGS)

# On the matrix where it was made, else on the bundled runs.
two-taps: build
	@$(PYTHON) scripts/two_taps.py --bin $(BIN) $(if $(wildcard $(TARGET)/matrix/index.json),--folder $(TARGET)/matrix) $(ARGS)

# What is in its folder stays; ARGS='--only rtt20' for a third of it, '--slice 1/4' for a quarter.
.PHONY: accuracy-record
accuracy-record: build
	@$(PYTHON) scripts/accuracy_record.py --bin $(BIN) $(ARGS)

# Labels are what the kernel says of the same runs.
.PHONY: accuracy-programs
accuracy-programs: build
	@$(PYTHON) scripts/accuracy_programs.py --bin $(BIN) $(ARGS)

model-check: build
	@$(PYTHON) scripts/model_check.py --bin $(BIN) $(ARGS)

model-fixes: build
	@$(PYTHON) scripts/model_fixes.py --bin $(BIN) $(ARGS)

forecast: build
	@$(PYTHON) scripts/forecast.py --bin $(BIN) $(ARGS)

overhead: build
	@$(PYTHON) scripts/overhead.py --bin $(BIN) $(ARGS)

mcp-gigabyte: build
	@scripts/setup.sh test
	@$(TARGET)/tools/bin/python tests/mcp_test.py --bin $(BIN) --gigabyte

predict-real: build
	@$(PYTHON) scripts/predict_real.py --bin $(BIN)

model-flights: build
	@$(PYTHON) scripts/model_flights.py --bin $(BIN) $(ARGS)

tables-size: build
	@$(PYTHON) scripts/tables_size.py --bin $(BIN)

profiled:
	@scripts/setup.sh profiled
	@$(PYTHON) scripts/profiled.py

static:
	@$(PYTHON) scripts/package.py static

advisories:
	@$(PYTHON) scripts/advisories.py check $(DB) $(ARGS)

api:
	@$(PYTHON) scripts/api.py write

python:
	@$(PYTHON) scripts/python.py wheel

test-python: build
	@$(PYTHON) scripts/python.py test --bin $(BIN)

test-fleet: build
	@$(PYTHON) scripts/fleet.py --bin $(BIN) $(ARGS)

many: build
	@$(PYTHON) scripts/many.py --bin $(BIN) $(ARGS)

package: profiled
	@scripts/setup.sh test
	@$(PYTHON) scripts/package.py deb --bin $(TARGET)/profiled/tcpwhy
	@$(TARGET)/tools/bin/python scripts/package.py sbom

bench: build
	@scripts/setup.sh bench
	@$(PYTHON) scripts/bench.py --bin $(BIN) $(ARGS)

growth: build
	@$(PYTHON) scripts/growth.py measure --bin $(BIN)
	@$(PYTHON) scripts/growth.py draw

fuzz:
	@fuzz/run.sh $(SECONDS_EACH)

mutants:
	@$(PYTHON) scripts/mutants.py $(ARGS)

attack: build
	@$(PYTHON) scripts/attack.py --bin $(BIN) $(ARGS)

page-gigabyte: build
	@$(PYTHON) scripts/attack.py --bin $(BIN) --gigabyte

docs: build
	@$(PYTHON) scripts/docs.py --bin $(BIN)

docs-figures: build
	@$(PYTHON) scripts/figures.py --bin $(BIN)

web:
	@$(PYTHON) scripts/web.py build

screenshots: build
	@$(PYTHON) scripts/web.py screenshots --bin $(BIN)

.PHONY: watch-scenarios watch-costs watch-memory
watch-scenarios: build
	@$(PYTHON) scripts/watch_scenarios.py --bin $(BIN) --write $(ARGS)

watch-costs: build
	@scripts/setup.sh costs
	@$(PYTHON) scripts/watch_costs.py --bin $(BIN) --write $(ARGS)

watch-memory: build
	@scripts/setup.sh costs
	@$(PYTHON) scripts/watch_costs.py --bin $(BIN) --minutes $(or $(MINUTES),10)

bpf:
	@$(PYTHON) scripts/bpf.py build

install:
	@scripts/setup.sh demo
	$(CARGO) install --locked --path crates/tcpwhy

clean:
	$(CARGO) clean

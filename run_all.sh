#!/usr/bin/env bash
# Makes the environment, then runs the study (lib/commands/study.py) or, with "test", the tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

find_python() {
    local candidate
    # 3.11 first: pydegensac, by which HyNet's Table 4 finds poses, has no wheel for later ones.
    for candidate in python3.11 python3.13 python3.12 python3 python; do
        if command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    echo "run_all.sh: Python 3.11 or later is needed and was not found; install it, or conda" >&2
    exit 1
}

# The environment is made once, and again when what it is made from has changed.
make_environment() {
    local stamp=.venv/made-from conda
    if command -v flock >/dev/null; then
        # Two first starts at once would pull the environment from under each other.
        exec 9>.environment.lock
        flock 9
    fi
    if [ -x .venv/bin/python ] && cat requirements.txt environment.yml pyproject.toml | cmp -s - "$stamp"; then
        return
    fi
    echo "environment: making .venv (once, a few minutes) …"
    rm -rf .venv
    conda=$(command -v mamba || command -v conda || true)
    if [ -n "$conda" ]; then
        "$conda" env create --quiet --yes --prefix .venv --file environment.yml
    else
        "$(find_python)" -m venv .venv
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
        .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
            --no-build-isolation --editable .
    fi
    cat requirements.txt environment.yml pyproject.toml >"$stamp"
}

release_environment() {
    exec 9>&-
}

wants_help() {
    local argument
    for argument in "$@"; do
        case $argument in -h | --help) return 0 ;; esac
    done
    return 1
}

print_help() {
    cat <<'HELP'
./run_all.sh [options]   regenerate every table and figure (one to two hours on 2 cores)
./run_all.sh test        run the tests, the notebooks' among them

HELP
}

if wants_help "$@"; then
    print_help
    if [ ! -x .venv/bin/python ]; then
        echo "After the first run, or ./run_all.sh --plan, this also lists all options."
        exit 0
    fi
    exec .venv/bin/python -m lib.commands study --help
fi
make_environment
release_environment
export PATH="$PWD/.venv/bin:$PATH"

# glibc's allocator keeps the memory that a training step frees: returning it to the system and fetching
# it again at each step costs a fifth of a run. Other allocators ignore these variables.
export MALLOC_MMAP_THRESHOLD_=33554432 MALLOC_TRIM_THRESHOLD_=4000000000 MALLOC_TOP_PAD_=67108864

if [ "${1:-}" = test ]; then
    shift
    export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
    ruff check .
    ruff format --check .
    # nbval runs the notebooks' cells again and compares what they print with what is stored. A file's
    # tests stay on one core: they share its fixtures, and a notebook's cells share a kernel.
    exec python -m pytest -n auto --dist loadfile --nbval --nbval-current-env tests notebooks "$@"
fi
exec python -m lib.commands study "$@"

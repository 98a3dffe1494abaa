#!/bin/sh
# Prepares .venv from the lock file. Needs a POSIX shell and any Python from 3.9 on, or uv; safe to run again and again, and twice at once.
# Usage: scripts/setup.sh [--local-model]   also installs the local model server and its weights
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$here"
venv=$here/.venv
tools=$here/.tools
wanted=3.13
# The first uv that knows `python list VERSION` and `pip compile --group`.
least_uv=0.7

say() { printf '\033[2m· %s\033[0m\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

locks=requirements.lock
if [ "${1:-}" = "--local-model" ] || [ -e "$venv/.arbor-local-model" ]; then
    locks="requirements.lock requirements-local-model.lock"
fi

# --- Nothing to do? -----------------------------------------------------------------------------------

state() { { printf '%s\n' "$here"; cat -- $locks scripts/setup.sh; } | cksum; }
ready() {
    [ -x "$venv/bin/arbor" ] && [ "$(cat "$venv/.arbor-setup" 2>/dev/null)" = "$(state)" ] \
        && "$venv/bin/python" -c '' 2>/dev/null
}
if ready; then exit 0; fi

# --- One set-up at a time -------------------------------------------------------------------------------

# A symbolic link is created atomically; its target is the id of the process that sets up.
lock=$tools/setup.lock
{ mkdir -p "$tools" && [ -w "$tools" ]; } 2>/dev/null || fail "$tools is no folder that this user may write to: make it one, and run this again"
is_dead() { [ -n "$1" ] && ! kill -0 "$1" 2>/dev/null; }
# Removes the lock of a killed process. A lock of its own makes the check and the removal one step: another waiter may have removed
# the lock since it was read, and have set its own.
remove_dead_lock() {
    if ln -s "$$" "$lock.removal" 2>/dev/null; then
        if is_dead "$(readlink "$lock" || true)"; then rm -f "$lock"; fi
        rm -f "$lock.removal"
    elif is_dead "$(readlink "$lock.removal" || true)"; then
        rm -f "$lock.removal"
    fi
}
waiting=
until ln -s "$$" "$lock" 2>/dev/null; do
    holder=$(readlink "$lock" || true)
    if is_dead "$holder"; then
        remove_dead_lock
    elif [ -n "$holder" ]; then
        if [ -z "$waiting" ]; then say "process $holder is setting up: waiting for it"; fi
        waiting=yes
        sleep 1
    fi
done
trap 'rm -f "$lock"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
if [ -n "$waiting" ] && ready; then exit 0; fi

# --- uv: the one on the PATH, or one in .tools ----------------------------------------------------------

# A name on the PATH may be a shim that fails in this folder, so each name is tried.
pythons() {
    for name in python3 python python3.13 python3.12 python3.11 python3.10 python3.9; do
        command -v "$name" || true
    done
    for found in /usr/bin/python3 /usr/local/bin/python3 \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.*/bin/python3 "$HOME"/.pyenv/versions/3.*/bin/python3; do
        if [ -x "$found" ]; then printf '%s\n' "$found"; fi
    done
}

# Debian's and Ubuntu's Python may come without pip and ensurepip. apt hands pip's wheel to every user, and the system stays as it is.
debian_pip() {
    rm -rf "$tools/pip"
    mkdir -p "$tools/pip"
    (cd "$tools/pip" && apt-get -qq download python3-pip-whl && dpkg-deb -x python3-pip-whl_*.deb .) >/dev/null 2>&1 || return 1
    for wheel in "$tools"/pip/usr/share/python-wheels/pip-*.whl; do
        if [ -f "$wheel" ]; then printf '%s\n' "$wheel"; return 0; fi
    done
    return 1
}

# Installs uv into .tools/uv with one Python. Status 1: that Python has no pip; 2: pip failed and printed the reason.
install_uv_with() {
    rm -rf "$tools/uv"
    if "$1" -m venv "$tools/uv" >/dev/null 2>&1; then
        "$tools/uv/bin/python" -m pip install --quiet --disable-pip-version-check \
            --require-hashes --no-deps -r scripts/requirements-uv.lock >&2 || return 2
        return 0
    fi
    rm -rf "$tools/uv"
    if "$1" -m pip --version >/dev/null 2>&1; then
        wheel=
    else
        wheel=$(debian_pip) || return 1
    fi
    PYTHONPATH=$wheel "$1" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
        --target "$tools/uv" -r scripts/requirements-uv.lock >&2 || return 2
}

# Tries each Python, or says what to install.
install_uv() {
    tried=none
    IFS='
'
    for python in $(pythons); do
        unset IFS
        "$python" -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || continue
        status=0
        install_uv_with "$python" || status=$?
        if [ "$status" = 0 ] && usable "$tools/uv/bin/uv"; then return 0; fi
        if [ "$status" = 2 ]; then tried=pip; elif [ "$tried" = none ]; then tried=$python; fi
    done
    unset IFS
    case $tried in
        none) fail "no Python from 3.9 on was found. Install one (Debian, Ubuntu: apt-get install python3 python3-venv; Fedora: dnf install python3-pip; macOS: brew install python) or uv, and run this again" ;;
        pip) fail "pip could not install uv: see the lines above. Is a package registry within reach? Otherwise install uv, and run this again" ;;
        *) fail "$tried has neither venv nor pip. Install them (Debian, Ubuntu: apt-get install python3-venv; Fedora: dnf install python3-pip) or uv, and run this again" ;;
    esac
}

# Succeeds if a uv runs and is new enough.
usable() {
    "$1" --version 2>/dev/null | awk -v least="$least_uv" '
        { split($2, has, "."); split(least, wants, "."); exit !(has[1] + 0 > wants[1] + 0 || has[1] + 0 == wants[1] + 0 && has[2] + 0 >= wants[2] + 0) }
        END { if (NR == 0) exit 1 }'
}

uv=$(command -v uv || true)
if [ -z "$uv" ] || ! usable "$uv"; then
    if [ -n "$uv" ]; then say "$uv does not run, or is older than $least_uv: using .tools/uv"; fi
    uv=$tools/uv/bin/uv
    if ! usable "$uv"; then
        say "installing uv into .tools/"
        install_uv
    fi
fi

# --- Python 3.13: the fastest build that is there, else uv's own ----------------------------------------

tab=$(printf '\t')

# Every path where a Python may be, each once. uv knows its own and those on the PATH.
candidates() {
    {
        "$uv" python list --only-installed "$wanted" 2>/dev/null | sed 's/^[^ ]* *//; s/ -> .*//' || true
        "$uv" python find --system --no-python-downloads "$wanted" 2>/dev/null || true
        (
            set -f
            IFS=:
            for folder in $PATH:/usr/bin:/usr/local/bin; do
                for name in python$wanted python3 python; do printf '%s\n' "$folder/$name"; done
            done
        )
        for found in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/$wanted*/bin/python$wanted \
            "$HOME"/.pyenv/versions/$wanted*/bin/python$wanted; do
            printf '%s\n' "$found"
        done
    } | awk 'NF && !seen[$0]++'
}

# Prints the version, grade (0 is the fastest), build and path of a Python, by config/interpreter.py. Prints nothing for
# another version, for a shim that fails, and for a build that the locked packages do not fit.
describe() {
    described=$("$1" -I -S config/interpreter.py 2>/dev/null </dev/null) || return 0
    case $described in "$wanted$tab"*) printf '%s\n' "$described" ;; esac
}

find_python() {
    candidates | while IFS= read -r python; do
        if [ -x "$python" ]; then
            described=$(describe "$python")
            printf '%s\n' "$described"
            case $described in "$wanted${tab}0$tab"*) break ;; esac
        fi
    done | awk -F '\t' 'NF && (best == "" || $2 < grade) { best = $0; grade = $2 } END { print best }'
}

# Splits a description into $grade, $build and $python.
read_description() {
    IFS=$tab read -r _ grade build python <<DESCRIPTION
$1
DESCRIPTION
}

existing=$(describe "$venv/bin/python")
if [ -z "$existing" ]; then
    found=$(find_python)
    if [ -n "$found" ]; then
        read_description "$found"
        say "making .venv with $python: $build"
    else
        # None here: uv downloads one, which is optimized, when it makes the environment.
        python=$wanted
        say "making .venv with a Python $wanted that uv downloads"
    fi
    rm -rf "$venv"
    "$uv" venv --quiet --no-project --python "$python" "$venv" \
        || fail "no Python $wanted was found, and none could be downloaded. Install one (python3.13 with its venv of your system, or pyenv install 3.13), and run this again"
else
    # Processes may run from .venv, so it is not replaced for speed alone.
    read_description "$existing"
    has=$grade
    if [ "$has" != 0 ]; then read_description "$(find_python)"; fi
    if [ "${grade:-$has}" -lt "$has" ]; then
        say "$python is a faster build than that of .venv: stop Arbor, remove .venv and run this again to use it"
    fi
fi

# --- The packages, exactly as locked ------------------------------------------------------------------

say "installing the packages of: $locks"
rm -f "$venv/.arbor-setup"
# shellcheck disable=SC2086 (one or two file names of this repository)
"$uv" pip sync --quiet --compile-bytecode --require-hashes --python "$venv/bin/python" $locks || fail \
    "the packages could not be installed: see the lines above. They come from a package registry, and fit Linux (glibc) on x86-64 and arm64, and macOS on Apple silicon; this is $(uname -sm)"
if [ "$locks" != requirements.lock ]; then touch "$venv/.arbor-local-model"; fi

# --- Arbor itself: its folder on the path, and its command --------------------------------------------

site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$here" > "$site/arbor-house.pth"
# A shell script: a path too long for a #! line, or one with a space, does no harm here.
cat > "$venv/bin/arbor" <<SCRIPT
#!/bin/sh
exec "$venv/bin/python" -m config.cli "\$@"
SCRIPT
chmod 755 "$venv/bin/arbor"
# Eight processes start at once: none of them should compile first.
"$venv/bin/python" -m compileall -q arbor apps workers config bench || true

state > "$venv/.arbor-setup"
say "ready: .venv/bin/arbor --help"

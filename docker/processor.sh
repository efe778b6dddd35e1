# The processors for which the image holds compiled loops. The compiler would name the builder's own, which hardly any
# other has; loops for these two run on all that have as much, with the same results, as fast to within a tenth.

# Which of them this machine can run, the best last. On others, loops are compiled at the first start.
processors() {
    has avx2 fma f16c bmi1 bmi2 movbe abm || return 0
    echo x86-64-v3
    has avx512f avx512bw avx512cd avx512dq avx512vl && echo x86-64-v4 || true
}

has() {
    flags=" $(grep -m1 '^flags' /proc/cpuinfo) "
    for flag; do
        case "$flags" in *" $flag "*) ;; *) return 1 ;; esac
    done
}

# Compile for one of them from here on; for the machine's own processor under any other name.
choose_processor() {
    case "$1" in
    x86-64-v3) export NUMBA_CPU_NAME=$1 NUMBA_CPU_FEATURES=+avx2,+fma ;;
    # LLVM would use vectors of half the width for it.
    x86-64-v4) export NUMBA_CPU_NAME=$1 NUMBA_CPU_FEATURES=+avx512f,-prefer-256-bit ;;
    esac
}

#[test]
fn runs_every_kernel_on_a_device() {
    assert_eq!(openmp_saxpy::openmp_saxpy_check(), 0);
}

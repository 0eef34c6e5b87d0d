/* A C program that links the Rust staticlib or cdylib. */
int openmp_saxpy_check(void);

int main(void) { return openmp_saxpy_check(); }

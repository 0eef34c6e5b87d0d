; The lock of `omp critical` on NVIDIA GPUs, for device runtimes that lack it (LLVM 19).
;
; The name of a critical region is a global variable of eight words; its first word is 1 while a thread is inside.
; clang lets the threads of a warp enter one after the other, so no thread waits for another one of its warp.

target triple = "nvptx64-nvidia-cuda"

define void @__kmpc_critical(ptr %source, i32 %thread, ptr %name) convergent nounwind {
  ; The entry block must not be a loop: the optimizer removes the loop then.
  br label %try

try:
  %result = cmpxchg ptr %name, i32 0, i32 1 seq_cst seq_cst, align 4
  %entered = extractvalue { i32, i1 } %result, 1
  br i1 %entered, label %inside, label %try

inside:
  ; What the last thread inside wrote is read after this.
  call void @llvm.nvvm.membar.gl()
  ret void
}

define void @__kmpc_end_critical(ptr %source, i32 %thread, ptr %name) convergent nounwind {
  ; What this thread wrote is seen before the lock is free.
  call void @llvm.nvvm.membar.gl()
  %last = atomicrmw xchg ptr %name, i32 0 seq_cst, align 4
  ret void
}

declare void @llvm.nvvm.membar.gl()

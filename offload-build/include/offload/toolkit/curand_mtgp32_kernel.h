/* clang's header for CUDA includes this header of cuRAND, and NVIDIA's wheels of the toolkit lack it. The toolkit's own is
   included if it has one. Clang needs none of its declarations. */

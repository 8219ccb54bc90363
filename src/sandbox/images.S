/* The executables that run in sandboxes, embedded so that assay is one file. The paths come from CMake. */
    .macro image name, path
    .global \name
    .global \name\()_end
    .balign 16
\name:
    .incbin "\path"
\name\()_end:
    .endm

    .section .rodata
    image assay_worker_image, ASSAY_WORKER_PATH
    image assay_cuda_worker_image, ASSAY_CUDA_WORKER_PATH
    image assay_device_image, ASSAY_DEVICE_PATH
    .section .note.GNU-stack,"",@progbits

/* The worker executable, embedded so that assay is one file. ASSAY_WORKER_PATH comes from CMake. */
    .section .rodata
    .global assay_worker_image
    .global assay_worker_image_end
    .balign 16
assay_worker_image:
    .incbin ASSAY_WORKER_PATH
assay_worker_image_end:
    .section .note.GNU-stack,"",@progbits

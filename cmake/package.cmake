# A Debian package, by `cpack` in the build folder; scripts/package.sh makes one for any machine of the architecture.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME assay)
set(CPACK_PACKAGE_CONTACT "the assay authors <assay@localhost>")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "grades kernels that language models write
Builds answers in C++ and CUDA in a sandbox, checks them against fp64 references on hidden inputs,
times them between a naive and an expert implementation and grades them from measured facts alone.
Answers in CUDA run on a simulated GPU and need nvcc to be compiled.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "g++")  # compiles the answers
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "bash-completion")
if(ASSAY_NATIVE)
  # Such a package may not run elsewhere, and its name says so.
  set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION}+native)
  string(APPEND CPACK_DEBIAN_PACKAGE_DESCRIPTION "\nThis build is for the processor that made it.")
else()
  set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
endif()
include(CPack)

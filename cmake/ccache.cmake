# Where ccache is installed, everything is compiled through it. Clones in other folders share what it
# holds: paths below the source tree are hashed as relative ones, and the working directory is not
# hashed. A precompiled header counts by its contents, not by its time stamp.
option(ASSAY_CCACHE "Compile through ccache where it is installed" ON)
find_program(CCACHE_PROGRAM ccache)
mark_as_advanced(CCACHE_PROGRAM)
if(ASSAY_CCACHE AND CCACHE_PROGRAM)
  # Precompiled headers of clang hold absolute paths, so that no two clones would share what is compiled
  # with them.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(CMAKE_DISABLE_PRECOMPILE_HEADERS ON)
  endif()
  # ccache hashes -march=native as it stands. A cache that moves to another processor must not give
  # it instructions that it lacks, so what the compiler takes 'native' for is hashed too.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -E -dM -x c++ /dev/null
    OUTPUT_VARIABLE native_macros ERROR_QUIET)
  string(SHA256 native_macros "${native_macros}")
  string(SUBSTRING ${native_macros} 0 16 native_macros)
  set(launcher env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=true CCACHE_NAMESPACE=${native_macros}
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE_PROGRAM})
  foreach(language C CXX)
    # A launcher that the user named stays.
    if(NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER ${launcher})
    endif()
  endforeach()
endif()

# What `cmake --install` puts where:
#   bin/assay
#   share/assay/          what assay reads: the challenges without their trusted sources, which are
#                         compiled in, the par kernels, and the headers that answers include
#   share/man/man1, share/bash-completion/completions, share/doc/assay
include(GNUInstallDirs)

install(TARGETS assay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES challenges/check.schema.json challenges/entrant.schema.json challenges/grade.schema.json
  challenges/mutants.schema.json challenges/public.schema.json challenges/rubric.json challenges/rubric.schema.json
  challenges/scoreboard.schema.json challenges/spec.schema.json
  DESTINATION ${CMAKE_INSTALL_DATADIR}/assay/challenges)
install(FILES challenges/shared/prompt_cuda.md challenges/shared/prompt_rules.md challenges/shared/prompt_tests.md
              challenges/shared/prompt_tests_cuda.md challenges/shared/prompt_no_tests_cuda.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/assay/challenges/shared)
install(DIRECTORY challenges/shared/baselines DESTINATION ${CMAKE_INSTALL_DATADIR}/assay/challenges/shared)
foreach(name ${challenges})
  install(DIRECTORY challenges/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/assay/challenges
    FILES_MATCHING REGEX "/harness$" EXCLUDE REGEX "/((spec|public|mutants)\\.json|(prompt|hints)\\.md|abi\\.h|worker/(call\\.h|witness\\.cpp)|(baselines|examples)/.*)$")
endforeach()
install(DIRECTORY kernels DESTINATION ${CMAKE_INSTALL_DATADIR}/assay FILES_MATCHING REGEX "\\.(cu|h)$")
install(DIRECTORY include DESTINATION ${CMAKE_INSTALL_DATADIR}/assay)
install(FILES README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)

# The program describes itself.
set(man_page ${generated}/assay.1)
set(completion ${generated}/assay.bash)
add_custom_command(OUTPUT ${man_page} COMMAND assay man > ${man_page} DEPENDS assay VERBATIM)
add_custom_command(OUTPUT ${completion} COMMAND assay completion bash > ${completion} DEPENDS assay VERBATIM)
add_custom_target(assay_described ALL DEPENDS ${man_page} ${completion})
install(FILES ${man_page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${completion} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME assay)

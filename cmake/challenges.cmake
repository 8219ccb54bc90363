# Challenges are found by folder: nothing else names them.

# find_challenges(RESULT FOLDER): every folder of FOLDER with a spec.json is a challenge. Sets RESULT_names,
# RESULT_trusted (the harness's sources) and RESULT_adapters (the worker's).
function(find_challenges result folder)
  file(GLOB spec_files CONFIGURE_DEPENDS ${folder}/*/spec.json)
  set(names "")
  set(trusted "")
  set(adapters "")
  foreach(spec ${spec_files})
    get_filename_component(challenge ${spec} DIRECTORY)
    get_filename_component(name ${challenge} NAME)
    list(APPEND names ${name})
    file(GLOB sources CONFIGURE_DEPENDS ${challenge}/harness/*.cpp)
    list(APPEND trusted ${sources})
    list(APPEND adapters ${challenge}/worker/adapter.cpp)
  endforeach()
  set(${result}_names "${names}" PARENT_SCOPE)
  set(${result}_trusted "${trusted}" PARENT_SCOPE)
  set(${result}_adapters "${adapters}" PARENT_SCOPE)
endfunction()

# write_registries(FOLDER NAME...): FOLDER/challenge_registry.cpp for the harness and FOLDER/adapter_registry.cpp for
# the worker, a row a challenge.
function(write_registries folder)
  list(SORT ARGN)
  foreach(name ${ARGN})
    string(APPEND challenge_declarations "const Challenge& challenge_${name}();\n")
    string(APPEND challenge_rows "    {\"${name}\", &challenge_${name}},\n")
    string(APPEND adapter_declarations "std::int32_t adapter_${name}(Call&);\n")
    string(APPEND adapter_rows "    {\"${name}\", &adapter_${name}},\n")
  endforeach()
  foreach(registry challenge_registry adapter_registry)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${registry}.cpp.in ${folder}/${registry}.cpp @ONLY)
  endforeach()
endfunction()

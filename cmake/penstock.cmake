# How every target of this project is made. A room (a folder under
# src/penstock) is one library and one test binary; DEPS is the whole list of
# rooms and packages it may use, and tools/check_includes holds it to that.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

set(PENSTOCK_SANITIZE "" CACHE STRING "address,undefined or thread")

find_program(PENSTOCK_CCACHE ccache)
if(PENSTOCK_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PENSTOCK_CCACHE})
endif()

# A fast linker where there is one: thirty test and product links are a good
# part of a build from nothing.
find_program(PENSTOCK_MOLD mold)
if(PENSTOCK_MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_library(penstock_options INTERFACE)
target_compile_options(penstock_options INTERFACE
  -Wall -Wextra -Werror -Werror=switch -Wno-unused-parameter
  # gcc 12 is wrong about strings that are joined or moved.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds -Wno-restrict
    -Wno-stringop-overflow>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety -Werror=thread-safety>)
if(PENSTOCK_SANITIZE)
  target_compile_options(penstock_options INTERFACE
    -fsanitize=${PENSTOCK_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(penstock_options INTERFACE
    -fsanitize=${PENSTOCK_SANITIZE})
  if(PENSTOCK_SANITIZE STREQUAL "thread")
    # The distribution's protobuf and absl were built without it, and their
    # headers would lay out classes (map fields) otherwise than their libraries.
    # The standard library's headers only need to know.
    add_compile_options(-U__SANITIZE_THREAD__ -D_GLIBCXX_TSAN=1)
  endif()
endif()

# Headers that nearly every source reads are parsed once for all of them, which
# is a third of a build's time. Sources still include what they use: clang builds
# go without, and so does TSan's, where gcc finds that a macro is missing.
function(penstock_precompile name header)
  set(folder ${CMAKE_SOURCE_DIR}/cmake/precompiled)
  add_executable(${name} EXCLUDE_FROM_ALL ${folder}/empty.cc)
  target_link_libraries(${name} PRIVATE penstock_options)
  target_precompile_headers(${name} PRIVATE ${folder}/${header})
endfunction()

# penstock_use_precompiled(target name): as `name` was precompiled.
function(penstock_use_precompiled target name)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND
     NOT PENSTOCK_SANITIZE STREQUAL "thread")
    target_precompile_headers(${target} REUSE_FROM ${name})
  endif()
endfunction()

penstock_precompile(penstock_headers headers.h)
# Libraries and programs differ in a flag, and gcc minds.
set_target_properties(penstock_headers PROPERTIES COMPILE_OPTIONS -fPIC)
penstock_precompile(penstock_test_headers test_headers.h)
target_link_libraries(penstock_test_headers PRIVATE GTest::gmock)

# penstock_library(room HDRS ... SRCS ... DEPS ...)
function(penstock_library name)
  cmake_parse_arguments(ARG "" "" "HDRS;SRCS;DEPS" ${ARGN})
  add_library(penstock_${name} STATIC ${ARG_SRCS} ${ARG_HDRS})
  add_library(penstock::${name} ALIAS penstock_${name})
  set_target_properties(penstock_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(penstock_${name}
    PUBLIC ${ARG_DEPS} PRIVATE penstock_options)
  penstock_use_precompiled(penstock_${name} penstock_headers)
endfunction()

# penstock_test(room SRCS ... DEPS ...): every *_test.cc of a room in one
# binary, since linking thirty of them is what costs.
function(penstock_test name)
  cmake_parse_arguments(ARG "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name}_test ${ARG_SRCS})
  target_link_libraries(${name}_test PRIVATE
    penstock_options ${ARG_DEPS} GTest::gmock GTest::gtest_main)
  penstock_use_precompiled(${name}_test penstock_test_headers)
  add_test(NAME ${name}_test COMMAND ${name}_test --gtest_brief=1)
  set_tests_properties(${name}_test PROPERTIES TIMEOUT 600)
endfunction()

# penstock_prefer_archives(regex): imported shared libraries of that name are
# linked as the archive that lies beside them, where there is one.
function(penstock_prefer_archives regex)
  get_property(targets DIRECTORY PROPERTY IMPORTED_TARGETS)
  foreach(target ${targets})
    if(NOT target MATCHES "${regex}")
      continue()
    endif()
    get_target_property(configs ${target} IMPORTED_CONFIGURATIONS)
    if(NOT configs)
      continue()
    endif()
    foreach(config ${configs})
      get_target_property(path ${target} IMPORTED_LOCATION_${config})
      string(REGEX REPLACE "\\.so[.0-9]*$" ".a" archive "${path}")
      if(EXISTS "${archive}")
        set_target_properties(${target} PROPERTIES
          IMPORTED_LOCATION_${config} "${archive}")
      endif()
    endforeach()
  endforeach()
endfunction()

# penstock_find_archives(variable name...): the paths of lib<name>.a, for
# libraries that come without a CMake package.
function(penstock_find_archives variable)
  set(found "")
  foreach(name ${ARGN})
    find_library(PENSTOCK_ARCHIVE_${name} NAMES lib${name}.a REQUIRED)
    list(APPEND found ${PENSTOCK_ARCHIVE_${name}})
  endforeach()
  list(APPEND found Threads::Threads ${CMAKE_DL_LIBS})
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

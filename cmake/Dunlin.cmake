# The flags of all our code, and the words that each folder's list is written in.

add_library(dunlin_flags INTERFACE)
target_compile_options(dunlin_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
    -fstack-protector-strong
    $<$<BOOL:${DUNLIN_WERROR}>:-Werror>)
target_compile_definitions(dunlin_flags INTERFACE _GNU_SOURCE DUNLIN_VERSION="${PROJECT_VERSION}")
target_include_directories(dunlin_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_link_libraries(dunlin_flags INTERFACE Threads::Threads)
if(DUNLIN_SANITIZE)
    # For all targets, the generated code's too.
    add_compile_options(-fsanitize=${DUNLIN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    add_link_options(-fsanitize=${DUNLIN_SANITIZE})
else()
    target_compile_definitions(dunlin_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2>)
endif()

# dunlin_module(NAME SOURCES a.c b.c [LINK other modules and libraries] [VENDOR libraries that only its .c files see])
function(dunlin_module name)
    cmake_parse_arguments(arg "" "" "SOURCES;LINK;VENDOR" ${ARGN})
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PUBLIC dunlin_flags ${arg_LINK} PRIVATE ${arg_VENDOR})
endfunction()

# dunlin_program(NAME SOURCES main.c [LINK modules])
function(dunlin_program name)
    cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
    add_executable(${name} ${arg_SOURCES})
    target_link_libraries(${name} PRIVATE ${arg_LINK} dunlin_flags)
endfunction()

# Seconds that one test of a label may take.
set(dunlin_budget_unit 60)
set(dunlin_budget_integration 120)
set(dunlin_budget_e2e 300)

# dunlin_test(LABEL path/to/x_test.c [SOURCES more files beside it] [LINK modules]): a cmocka program named after its path
# under tests/. End-to-end tests drive the release build's programs, so that they are registered there alone, and run one
# at a time.
function(dunlin_test label source)
    cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
    string(REGEX REPLACE "_test\\.c$" "" path ${source})
    string(REPLACE "/" "_" program "test_${label}_${path}")
    list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_SOURCE_DIR}/tests/${label}/)
    add_executable(${program} ${CMAKE_SOURCE_DIR}/tests/${label}/${source} ${arg_SOURCES})
    target_link_libraries(${program} PRIVATE ${arg_LINK} PkgConfig::cmocka dunlin_flags)
    if(label STREQUAL "e2e" AND DUNLIN_TEST_PREFIX)
        return()
    endif()
    set(name ${DUNLIN_TEST_PREFIX}${label}/${path})
    add_test(NAME ${name} COMMAND ${program})
    set_tests_properties(${name} PROPERTIES LABELS ${label} TIMEOUT ${dunlin_budget_${label}})
    if(label STREQUAL "e2e")
        set_tests_properties(${name} PROPERTIES RUN_SERIAL ON)
    endif()
endfunction()

# CMake package of @NAME@ @VERSION@: device code of the Cargo package @PACKAGE@.
#
#   find_package(@NAME@ REQUIRED)
#   target_link_libraries(program PRIVATE @NAME@::@NAME@)
#
# offload-link links the device code of the program. Set OFFLOAD_LINK to its path if it is not in PATH.

cmake_minimum_required(VERSION 3.14...3.25)

if(CMAKE_SYSTEM_PROCESSOR AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(@PROCESSORS@)$")
  set(@NAME@_FOUND FALSE)
  set(@NAME@_NOT_FOUND_MESSAGE "the library is for @HOST@, this build is for ${CMAKE_SYSTEM_PROCESSOR}")
  return()
endif()

find_program(OFFLOAD_LINK offload-link)
if(NOT OFFLOAD_LINK)
  set(@NAME@_FOUND FALSE)
  set(@NAME@_NOT_FOUND_MESSAGE
    "offload-link not found: install it (cargo install cargo-offload), or set OFFLOAD_LINK to its path")
  return()
endif()

# Libraries that the host code calls. The hint is their folder when this package was built.
set(_offload_libraries @OTHER_LIBRARIES@)
foreach(_offload_name IN ITEMS @RUNTIME@)
  find_library(OFFLOAD_${_offload_name}_LIBRARY NAMES ${_offload_name} HINTS "@RUNTIME_FOLDER@")
  mark_as_advanced(OFFLOAD_${_offload_name}_LIBRARY)
  if(NOT OFFLOAD_${_offload_name}_LIBRARY)
    set(@NAME@_FOUND FALSE)
    set(@NAME@_NOT_FOUND_MESSAGE
      "library `${_offload_name}` not found: set OFFLOAD_${_offload_name}_LIBRARY to its path")
    return()
  endif()
  list(APPEND _offload_libraries "${OFFLOAD_${_offload_name}_LIBRARY}")
endforeach()

# Compiler drivers start the `ld` of this folder.
set(_offload_linker "${CMAKE_BINARY_DIR}/CMakeFiles/offload-link")
file(MAKE_DIRECTORY "${_offload_linker}")
file(CREATE_LINK "${OFFLOAD_LINK}" "${_offload_linker}/ld" SYMBOLIC)

if(NOT TARGET @NAME@::@NAME@)
  get_filename_component(_offload_folder "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
  add_library(@NAME@::@NAME@ STATIC IMPORTED)
  set_target_properties(@NAME@::@NAME@ PROPERTIES
    IMPORTED_LOCATION "${_offload_folder}/@FILE@"
    INTERFACE_LINK_LIBRARIES "${_offload_libraries}"
    INTERFACE_LINK_OPTIONS "-B${_offload_linker}")
  if(IS_DIRECTORY "${_offload_folder}/include/@NAME@")
    set_target_properties(@NAME@::@NAME@ PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${_offload_folder}/include/@NAME@")
  endif()
endif()

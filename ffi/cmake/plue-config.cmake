# find_package(plue) gives plue::plue (shared) and plue::plue_static.
include(CMakeFindDependencyMacro)
find_dependency(Threads)

get_filename_component(_plue_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
get_filename_component(_plue_include "${_plue_lib}/../include" ABSOLUTE)

if(NOT TARGET plue::plue)
  add_library(plue::plue SHARED IMPORTED)
  set_target_properties(plue::plue PROPERTIES
    IMPORTED_LOCATION "${_plue_lib}/${CMAKE_SHARED_LIBRARY_PREFIX}plue${CMAKE_SHARED_LIBRARY_SUFFIX}"
    INTERFACE_INCLUDE_DIRECTORIES "${_plue_include}")

  add_library(plue::plue_static STATIC IMPORTED)
  set_target_properties(plue::plue_static PROPERTIES
    IMPORTED_LOCATION "${_plue_lib}/libplue.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_plue_include}"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS}")
endif()

unset(_plue_lib)
unset(_plue_include)

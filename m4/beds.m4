dnl SPDX-License-Identifier: Apache-2.0
dnl The beds: benchmarks over real middleware, of which each is built where that is installed.

dnl WR_BED(VARIABLE, NAME, PACKAGES, PROBE): one bed, for whose middleware Debian has PACKAGES.
dnl PROBE sets have_VARIABLE to yes or no, and where it is yes VARIABLE_CFLAGS and VARIABLE_LIBS,
dnl which become output variables. Makes the conditional BED_VARIABLE, and adds to the summary.
AC_DEFUN([WR_BED],
  [have_$1=no $1_CFLAGS= $1_LIBS=
   AS_IF([test "$with_beds" != no], [$4])
   AS_CASE([$with_beds$have_$1],
     [yesno], [AC_MSG_ERROR([--with-beds: what $2 needs is missing (on Debian: $3)])],
     [*yes], [AS_VAR_APPEND([beds], [" $2"])],
     [autono], [AS_VAR_APPEND([missing_beds], [" $2 ($3)"])])
   AM_CONDITIONAL([BED_$1], [test "$have_$1" = yes])
   AC_SUBST([$1_CFLAGS])
   AC_SUBST([$1_LIBS])])

dnl WR_BED_LIBRARY(VARIABLE, CFLAGS, LIBS, INCLUDES, BODY): a probe for middleware without a file
dnl for pkg-config: can a C++ program with these INCLUDES and this BODY be built and linked?
AC_DEFUN([WR_BED_LIBRARY],
  [AC_MSG_CHECKING([for a C++ program with $3])
   AC_LANG_PUSH([C++])
   wr_save_CXXFLAGS=$CXXFLAGS wr_save_LIBS=$LIBS
   CXXFLAGS="$CXXFLAGS $CXX_STANDARD $2" LIBS="$3 $LIBS"
   AS_IF([test -n "$CXX_STANDARD"],
     [AC_LINK_IFELSE([AC_LANG_PROGRAM([$4], [$5])],
       [have_$1=yes $1_CFLAGS="$2" $1_LIBS="$3"])])
   CXXFLAGS=$wr_save_CXXFLAGS LIBS=$wr_save_LIBS
   AC_LANG_POP([C++])
   AC_MSG_RESULT([$have_$1])])

dnl WR_BED_CYCLONE: the probe for Cyclone DDS and its compiler of types.
AC_DEFUN([WR_BED_CYCLONE],
  [PKG_CHECK_MODULES([CYCLONE], [CycloneDDS], [have_CYCLONE=yes], [have_CYCLONE=no])
   AC_PATH_PROG([IDLC], [idlc])
   test -n "$IDLC" || have_CYCLONE=no])

dnl WR_BED_MESSAGES: the probe for messages in C that rosidl generates, with introspection; it sees
dnl whether the generator can do that here. After the probes for rcutils and rosidl's runtime.
AC_DEFUN([WR_BED_MESSAGES],
  [wr_messages_CPPFLAGS=$CPPFLAGS
   CPPFLAGS="$CPPFLAGS $ROSIDL_CFLAGS $RCUTILS_CFLAGS"
   AS_IF([test "$have_RCUTILS$have_ROSIDL" = librarylibrary],
     [WR_ROS_PACKAGE([ROSIDL_INTERFACE], [rosidl_typesupport_interface],
        [rosidl_typesupport_interface/macros.h], [no_function_in_these_headers])
      WR_ROS_PACKAGE([ROSIDL_INTROSPECTION], [rosidl_typesupport_introspection_c],
        [rosidl_typesupport_introspection_c/identifier.h],
        [rosidl_typesupport_introspection_c__identifier])
      AC_PATH_PROG([ROSIDL_TOOL], [rosidl])
      AC_MSG_CHECKING([whether rosidl generates messages])
      AS_IF([test "$have_ROSIDL_INTERFACE$have_ROSIDL_INTROSPECTION" = headerlibrary &&
             test -n "$ROSIDL_TOOL" && AS_MKDIR_P([conftest.dir/msg]) &&
             echo 'uint8@<:@@:>@ data' >conftest.dir/msg/Probe.msg &&
             "$ROSIDL_TOOL" generate -t c -ts introspection_c -o conftest.dir weir_probe \
               "`pwd`/conftest.dir:msg/Probe.msg" >&AS_MESSAGE_LOG_FD 2>&1 &&
             test -s conftest.dir/c/msg/detail/probe__functions.c &&
             test -s conftest.dir/introspection_c/msg/detail/probe__type_support.c],
        [have_MESSAGES=yes
         MESSAGES_CFLAGS="$ROSIDL_INTROSPECTION_CFLAGS $ROSIDL_INTERFACE_CFLAGS $ROSIDL_CFLAGS"
         AS_VAR_APPEND([MESSAGES_CFLAGS], [" $RCUTILS_CFLAGS"])
         MESSAGES_LIBS="$ROSIDL_INTROSPECTION_LIBS $ROSIDL_LIBS $RCUTILS_LIBS"])
      rm -rf conftest.dir
      AC_MSG_RESULT([$have_MESSAGES])])
   CPPFLAGS=$wr_messages_CPPFLAGS])

dnl WR_BED_ROSCPP: the probe for roscpp, whose headers are not of C++20.
AC_DEFUN([WR_BED_ROSCPP],
  [WR_CXX_STANDARD([ROSCPP_STANDARD], [c++17 c++14])
   AS_IF([test -n "$ROSCPP_STANDARD"],
     [PKG_CHECK_MODULES([ROSCPP], [roscpp std_msgs sensor_msgs],
       [have_ROSCPP=yes], [have_ROSCPP=no])])])

dnl WR_BEDS: the switch, and all beds.
AC_DEFUN([WR_BEDS],
  [AC_ARG_WITH([beds],
     [AS_HELP_STRING([--with-beds=yes|no|auto],
       [build the benchmarks over real middleware: all, none, or those for which it is
        installed @<:@auto@:>@])],
     [], [with_beds=auto])
   AS_CASE([$with_beds], [yes | no | auto], [],
     [AC_MSG_ERROR([--with-beds takes yes, no or auto, not $with_beds])])
   beds= missing_beds=

   WR_BED([ROUNDTRIP], [roundtrip], [libfastcdr-dev],
     [WR_BED_LIBRARY([ROUNDTRIP], [], [-lfastcdr], [[#include <fastcdr/Cdr.h>]],
       [[eprosima::fastcdr::FastBuffer buffer; eprosima::fastcdr::Cdr cdr(buffer);]])])
   WR_BED([CYCLONE], [cyclone], [cyclonedds-dev cyclonedds-tools], [WR_BED_CYCLONE])
   WR_BED([FASTDDS], [fastdds], [libfastrtps-dev libfastcdr-dev],
     [WR_BED_LIBRARY([FASTDDS], [], [-lfastrtps -lfastcdr],
       [[#include <fastcdr/Cdr.h>
#include <fastdds/dds/core/condition/WaitSet.hpp>]],
       [[eprosima::fastcdr::FastBuffer buffer; eprosima::fastcdr::Cdr cdr(buffer);
         eprosima::fastdds::dds::WaitSet waitset;]])])
   WR_BED([MESSAGES], [rosidl],
     [librosidl-runtime-c-cpp-dev rosidl-generator-c-cpp rosidl-tools python3-ament-index],
     [WR_BED_MESSAGES])
   WR_BED([ROSCPP], [roscpp], [libroscpp-dev libstd-msgs-dev libsensor-msgs-dev],
     [WR_BED_ROSCPP])])

dnl SPDX-License-Identifier: Apache-2.0
dnl Probes of compiler and linker flags.

dnl WR_CC_FLAGS(VARIABLE, FLAGS): append to VARIABLE those FLAGS that the C compiler takes, and
dnl make it an output variable.
AC_DEFUN([WR_CC_FLAGS],
  [wr_save_CFLAGS=$CFLAGS
   for wr_flag in m4_normalize([$2]); do
     AC_MSG_CHECKING([whether the compiler takes $wr_flag])
     CFLAGS="$wr_save_CFLAGS -Werror $wr_flag"
     AC_LINK_IFELSE([AC_LANG_SOURCE([[int main(void) { return 0; }]])],
       [AC_MSG_RESULT([yes])
        AS_VAR_APPEND([$1], [" $wr_flag"])],
       [AC_MSG_RESULT([no])])
   done
   CFLAGS=$wr_save_CFLAGS
   AC_SUBST([$1])])

dnl WR_LINK_FLAGS(VARIABLE, FLAGS): the same for flags that matter when a program is linked.
AC_DEFUN([WR_LINK_FLAGS],
  [wr_save_LDFLAGS=$LDFLAGS
   for wr_flag in m4_normalize([$2]); do
     AC_MSG_CHECKING([whether programs can be linked with $wr_flag])
     LDFLAGS="$wr_save_LDFLAGS $wr_flag"
     AC_LINK_IFELSE([AC_LANG_SOURCE([[int main(void) { return 0; }]])],
       [AC_MSG_RESULT([yes])
        AS_VAR_APPEND([$1], [" $wr_flag"])],
       [AC_MSG_RESULT([no])])
   done
   LDFLAGS=$wr_save_LDFLAGS
   AC_SUBST([$1])])

dnl WR_RELATIVE_DIR(VARIABLE, FROM, TO): the way from one installed folder to another, for files
dnl that find their neighbours from where they lie themselves. FROM and TO are variables of
dnl configure that name folders, libdir for instance. Makes VARIABLE an output variable.
AC_DEFUN([WR_RELATIVE_DIR],
  [wr_prefix=$prefix
   test "x$wr_prefix" != xNONE || wr_prefix=$ac_default_prefix
   wr_expand() {
     ( prefix=$wr_prefix
       test "x$exec_prefix" != xNONE || exec_prefix=$prefix
       wr_dir=$[]1
       while :; do
         case $wr_dir in
           *'$'*) eval "wr_dir=\"$wr_dir\"" ;;
           *) break ;;
         esac
       done
       AS_ECHO(["$wr_dir"]) )
   }
   wr_from=`wr_expand "$$2"` wr_to=`wr_expand "$$3"` wr_up=
   while :; do
     case $wr_to/ in
       "$wr_from"/*) break ;;
     esac
     wr_from=${wr_from%/*} wr_up=../$wr_up
   done
   wr_down=${wr_to[#]"$wr_from"}
   $1=$wr_up${wr_down[#]/}
   AC_SUBST([$1])])

dnl WR_ROS_PACKAGE(VARIABLE, PACKAGE, HEADER, FUNCTION): look for a C library of ROS, which has no
dnl file for pkg-config: as the compiler finds it, in the prefixes of a ROS environment that was
dnl sourced, and where distributions have it. Sets VARIABLE_CFLAGS and VARIABLE_LIBS, output
dnl variables; VARIABLE_VERSION, empty where it cannot be told; and have_VARIABLE: no, header, or
dnl library when a program can be linked, too.
AC_DEFUN([WR_ROS_PACKAGE],
  [wr_save_CPPFLAGS=$CPPFLAGS
   wr_save_LIBS=$LIBS
   have_$1=no $1_CFLAGS= $1_LIBS= $1_VERSION=
   AC_MSG_CHECKING([for $2])
   for wr_prefix in '' `echo "$AMENT_PREFIX_PATH" | tr : ' '` /usr; do
     for wr_folder in ${wr_prefix:+"$wr_prefix/include/$2" "$wr_prefix/include"} ''; do
       test -n "$wr_folder" || test -z "$wr_prefix" || continue
       $1_CFLAGS=${wr_folder:+"-isystem $wr_folder"}
       CPPFLAGS="$wr_save_CPPFLAGS $$1_CFLAGS"
       AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <$3>]], [[]])], [have_$1=header; break 2])
     done
   done
   AS_IF([test $have_$1 = header],
     [$1_LIBS="-l$2"
      AS_CASE([$wr_prefix], ['' | /usr], [],
        [$1_LIBS="-L$wr_prefix/lib -Wl,-rpath,$wr_prefix/lib -l$2"])
      test -z "$wr_prefix" || test ! -r "$wr_prefix/share/$2/package.xml" ||
        $1_VERSION=`sed -n 's,.*<version>\(.*\)</version>.*,\1,p' "$wr_prefix/share/$2/package.xml"`
      LIBS="$$1_LIBS $wr_save_LIBS"
      AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <$3>]], [[(void)!&$4;]])], [have_$1=library])],
     [$1_CFLAGS=])
   AC_MSG_RESULT([$have_$1 $$1_VERSION])
   CPPFLAGS=$wr_save_CPPFLAGS
   LIBS=$wr_save_LIBS
   AC_SUBST([$1_CFLAGS])
   AC_SUBST([$1_LIBS])
   AC_SUBST([$1_VERSION])])

dnl WR_CXX_STANDARD(VARIABLE, STANDARDS): set VARIABLE to the flag for the first of the STANDARDS
dnl that a working C++ compiler knows, or to nothing, and make it an output variable.
AC_DEFUN([WR_CXX_STANDARD],
  [AC_LANG_PUSH([C++])
   wr_save_CXXFLAGS=$CXXFLAGS
   $1=
   for wr_standard in $2; do
     test -z "$$1" || break
     AC_MSG_CHECKING([whether the C++ compiler takes -std=$wr_standard])
     CXXFLAGS="$wr_save_CXXFLAGS -std=$wr_standard"
     AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <new>]], [[delete new int;]])],
       [AC_MSG_RESULT([yes])
        $1="-std=$wr_standard"],
       [AC_MSG_RESULT([no])])
   done
   CXXFLAGS=$wr_save_CXXFLAGS
   AC_LANG_POP([C++])
   AC_SUBST([$1])])

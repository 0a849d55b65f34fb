# SPDX-License-Identifier: Apache-2.0
# Read by the scripts of this folder: own_files prints the project's own text files, a line each,
# relative to the top of the tree, which is made the current folder. What a build inside the tree
# leaves there is not among them.

cd "${srcdir:-.}" || exit 1

own_files() {
  find configure.ac Makefile.am dev.sh .ci m4/beds.m4 m4/weir.m4 include src tests bench doc ./*.md \
    -type f \( -name '*.[ch]' -o -name '*.cc' -o -name '*.hpp' -o -name '*.def' -o -name '*.map' -o -name '*.mk' \
    -o -name '*.am' -o -name '*.ac' -o -name '*.m4' -o -name '*.sh' -o -name '*.py' \
    -o -name '*.md' -o ! -name '*.*' \) -print | LC_ALL=C sort |
    while read -r file; do
      case $file in
        *.*) echo "$file" ;;
        *) test "$(head -c 2 "$file")" = '#!' && echo "$file" ;;
      esac
    done
}

# Those of them that are programs or read by one.
own_sources() {
  own_files | grep -v '\.md$'
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas for C++, in this header alone: weir::allocator<T> for containers, smart pointers and
 * rclcpp (C++11 and later), and weir::memory_resource for std::pmr (C++17 and later, where the
 * library has <memory_resource>; WEIR_HAS_MEMORY_RESOURCE is defined then).
 *
 *     std::vector<float, weir::allocator<float>> ranges(arena);
 *
 *     weir::memory_resource resource(arena);
 *     std::pmr::string name("front_left", &resource);
 *
 * Both hold the address of an arena and own nothing: copies are as good as the original and may
 * outlive it. They are good until weir_arena_destroy; without an arena, or with nullptr for it,
 * they stand for the default arena and are good for ever. Both are equal to those of the same
 * arena, of whatever value type. Thread-safety and cost are those of the functions of weir/arena.h.
 *
 * When memory is out, the limit is reached or the buffer is full, std::bad_alloc is thrown, and
 * std::bad_array_new_length when a number of elements has more bytes than a size_t holds. New
 * handlers are not called: they are for memory of the process, a limit is the arena's. Code that is
 * compiled without exceptions ends in std::terminate instead.
 *
 * A block's size is never taken from who gives it back: weir knows it by the address.
 */
#ifndef WEIR_MEMORY_RESOURCE_HPP
#define WEIR_MEMORY_RESOURCE_HPP

#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <type_traits>
#include <weir/arena.h>

#if __cplusplus >= 201703L && defined(__has_include)
#if __has_include(<memory_resource>)
#include <cstring>
#include <memory_resource>
#define WEIR_HAS_MEMORY_RESOURCE 1
#endif
#endif

namespace weir {

/* Not for use from outside this header. */
namespace detail {

/* What every block is aligned to without being asked. */
constexpr std::size_t plain_alignment = 16;

template <typename Error> [[noreturn]] inline void give_up() {
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
  throw Error();
#else
  std::terminate();
#endif
}

inline void *take(weir_arena_t *arena, std::size_t alignment, std::size_t size) {
  void *block = alignment <= plain_alignment ? weir_arena_alloc(arena, size)
                                             : weir_arena_aligned_alloc(arena, alignment, size);
  if (block == nullptr)
    give_up<std::bad_alloc>();
  return block;
}

} // namespace detail

/**
 * An allocator, as the standard library's containers and smart pointers take one, over an arena.
 *
 * T  the elements; over-aligned types are honoured. An allocator of void counts in bytes.
 *
 * What becomes of the arena when a container is
 *   copied           the copy takes its memory from the same arena, so that what was set up to be
 *                    resident, locked or bounded stays so; name an allocator to choose another:
 *                    vector(original, weir::allocator<T>(other))
 *   copy-assigned    each keeps its own: elements are copied into the arena of the left side, and
 *                    an assignment never begins to use memory that the left side's owner did not
 *                    choose, or that may go before it
 *   moved, swapped   the arena goes with the memory: the elements stay where they are, however
 *                    many there are and whichever arenas they lie in
 */
template <typename T = void> class allocator {
public:
  using value_type = T;
  using propagate_on_container_copy_assignment = std::false_type;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;
  using is_always_equal = std::false_type;

  /* For code that does not know std::allocator_traits. */
  template <typename U> struct rebind { using other = allocator<U>; };

  /** Of the default arena. */
  constexpr allocator() noexcept : arena_(nullptr) {}

  /** Of `arena`; nullptr: the default arena. */
  constexpr allocator(weir_arena_t *arena) noexcept : arena_(arena) {}

  /** Of the arena of `other`. */
  template <typename U>
  constexpr allocator(const allocator<U> &other) noexcept : arena_(other.arena()) {}

  /** Room for `count` elements, uninitialised; a block of its own for 0. */
  T *allocate(std::size_t count) {
    /* What is more than an object may have is refused here, so that compilers which see such a
     * count come do not warn of it. */
    if (count > PTRDIFF_MAX / sizeof(element)) {
      if (count > SIZE_MAX / sizeof(element))
        detail::give_up<std::bad_array_new_length>();
      detail::give_up<std::bad_alloc>();
    }
    return static_cast<T *>(detail::take(arena_, alignof(element), count * sizeof(element)));
  }

  /**
   * Give `block` back, whichever allocator of whichever arena it came from. The count may be wrong.
   *
   * With a count of sizeof(T) this allocator is not read and may be gone: rclcpp passes just that,
   * for the blocks of its publishers' and subscriptions' handles (which it calls one char each) and
   * for messages, through a pointer to an allocator that it may have destroyed. Other counts come
   * from containers, which hold an allocator; knowing the arena, the block is found sooner.
   */
  void deallocate(T *block, std::size_t count) noexcept {
    if (count == sizeof(element))
      weir_free(block);
    else
      weir_arena_free(arena_, block);
  }

  /** The arena; nullptr for the default arena. */
  constexpr weir_arena_t *arena() const noexcept {
    return arena_;
  }

private:
  using element = typename std::conditional<std::is_void<T>::value, char, T>::type;

  weir_arena_t *arena_;
};

template <typename T, typename U>
constexpr bool operator==(const allocator<T> &left, const allocator<U> &right) noexcept {
  return left.arena() == right.arena();
}

template <typename T, typename U>
constexpr bool operator!=(const allocator<T> &left, const allocator<U> &right) noexcept {
  return left.arena() != right.arena();
}

#ifdef WEIR_HAS_MEMORY_RESOURCE

/**
 * A memory resource over an arena: for std::pmr's containers, and as what its pools and buffers
 * take their memory from. Any power of two is honoured as an alignment.
 *
 * It must outlive what was made with it, as every memory resource, but may be copied and assigned
 * at any time: a block finds its arena by its address. One class to all libraries of a process,
 * also to those that hide their names, as far as the loader allows.
 */
class __attribute__((visibility("default"))) memory_resource : public std::pmr::memory_resource {
public:
  /** Of the default arena. */
  memory_resource() noexcept = default;

  /** Of `arena`; nullptr: the default arena. */
  explicit memory_resource(weir_arena_t *arena) noexcept : arena_(arena) {}

  /** The arena; nullptr for the default arena. */
  weir_arena_t *arena() const noexcept {
    return arena_;
  }

protected:
  void *do_allocate(std::size_t size, std::size_t alignment) override {
    return detail::take(arena_, alignment, size);
  }

  void do_deallocate(void *block, std::size_t, std::size_t) override {
    weir_arena_free(arena_, block);
  }

  /** Equal are those of one arena. */
  bool do_is_equal(const std::pmr::memory_resource &other) const noexcept override {
    const memory_resource *alike = recognise(other);

    return alike != nullptr && alike->arena_ == arena_;
  }

private:
  /* What `other` is as one of these; nullptr if it is something else. An object with virtual
   * functions begins with the address of their table, which is one and the same for objects of one
   * class, but for copies of it in libraries that are loaded apart. Those are told by their type,
   * whose address stands before the table; it is null in code without types (-fno-rtti), at which
   * dynamic_cast would crash. Copies that cannot be told pass for different, which is safe: their
   * containers then copy what they could have handed over. */
  const memory_resource *recognise(const std::pmr::memory_resource &other) const noexcept {
    const void *const *mine;
    const void *const *others;

    std::memcpy(&mine, static_cast<const void *>(this), sizeof mine);
    std::memcpy(&others, static_cast<const void *>(&other), sizeof others);
    if (mine == others)
      return static_cast<const memory_resource *>(&other);
#if defined(__cpp_rtti) || defined(__GXX_RTTI)
    if (others[-1] != nullptr)
      return dynamic_cast<const memory_resource *>(&other);
#endif
    return nullptr;
  }

  weir_arena_t *arena_ = nullptr;
};

#endif

} // namespace weir

#endif

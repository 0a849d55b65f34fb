/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread_local objects with destructors that allocate, in threads by the hundred, beside keys
 * whose destructors run after them; and static objects that are destroyed at exit.
 */
#include "expect.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

int destroyed;

struct local {
  std::vector<std::string> texts;
  ~local() {
    std::vector<std::unique_ptr<char[]>> more;
    for (int i = 0; i < 100; i++)
      more.emplace_back(new char[static_cast<size_t>(1 + i * 200)]);
    texts.emplace_back("one more text, longer than what fits into the object itself");
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED);
  }
};

thread_local local first;
thread_local std::unique_ptr<local> second;

pthread_key_t key;

void after_locals(void *value) {
  auto *text = static_cast<std::string *>(value);
  EXPECT(text->size() > 30, "a string did not live as long as its thread");
  delete text;
  std::vector<int> late(10000, 7);
  EXPECT(late[9999] == 7, "a vector in a destructor");
}

void body(int number) {
  for (int i = 0; i < 20; i++) {
    first.texts.push_back("a text that is longer than what fits " + std::to_string(number + i));
  }
  if (number % 2 == 0) {
    second = std::make_unique<local>();
    second->texts.resize(10, std::string(300, 'y'));
  }
  pthread_setspecific(key, new std::string(100, 'z'));
}

void some_threads(int count) {
  for (int i = 0; i < count; i += 2) {
    std::thread one(body, i);
    std::thread other(body, i + 1);
    one.join();
    other.join();
  }
}

struct global {
  std::vector<std::string> texts{1000, std::string(100, 'g')};
  ~global() {
    texts.resize(2000, std::string(200, 'h'));
  }
} at_end;

} // namespace

int main() {
  expect_start();
  pthread_key_create(&key, after_locals);
  some_threads(100);
  malloc_trim(0);
  size_t before = expect_rss();
  some_threads(900);
  size_t after = expect_rss();
  EXPECT(after <= before + 32 * EXPECT_MIB, "900 threads: %zu KiB became %zu", before >> 10,
         after >> 10);
  malloc_trim(0);
  after = expect_rss();
  EXPECT(after <= before + 2 * EXPECT_MIB, "trimmed, 900 threads: %zu KiB became %zu", before >> 10,
         after >> 10);
  /* A thread_local that nobody touches in a thread is not built there. */
  EXPECT(destroyed >= 1500, "only %d thread_local objects were destroyed", destroyed);
  at_end.texts.emplace_back("kept to the end");
  return expect_done();
}

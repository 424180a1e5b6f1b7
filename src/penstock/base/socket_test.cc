#include "penstock/base/socket.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "penstock/base/socket_testing.h"

namespace penstock {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(Descriptor, ClosesWhatItOwns) {
  auto [near, far] = SocketPair();
  const int first = near.get();
  const int second = far.get();
  near = std::move(far);
  EXPECT_FALSE(IsOpen(first));
  EXPECT_TRUE(IsOpen(second));
  EXPECT_FALSE(far.is_open());  // NOLINT(bugprone-use-after-move)
  const Descriptor taken(near.Release());
  EXPECT_FALSE(near.is_open());
  EXPECT_EQ(taken.get(), second);
}

TEST(Socket, ReceivesWhatComesInPieces) {
  auto [near, far] = SocketPair();
  std::thread sender([&far = far] {
    for (char c : std::string("abcdef")) {
      EXPECT_TRUE(SendAll(far.get(), {&c, 1}).ok());
    }
  });
  char got[6];
  EXPECT_TRUE(ReceiveAll(near.get(), got, sizeof(got)).ok());
  EXPECT_EQ(std::string(got, sizeof(got)), "abcdef");
  sender.join();
}

TEST(Socket, GivesUpOnAMessageThatStops) {
  auto [near, far] = SocketPair();
  ASSERT_TRUE(SendAll(far.get(), "abc").ok());
  char got[6];
  EXPECT_TRUE(ReceiveAll(near.get(), got, 2, nullptr, 0).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(
      ReceiveAll(near.get(), got, 2, nullptr, /*patience_ms=*/1)));
}

TEST(Socket, SendsMoreThanItsBufferHolds) {
  auto [near, far] = SocketPair();
  const std::string sent(8 << 20, 'x');
  fcntl(far.get(), F_SETFL, O_NONBLOCK);  // so that it must wait for room
  std::thread sender(
      [&, &far = far] { EXPECT_TRUE(SendAll(far.get(), sent).ok()); });
  std::string got(sent.size(), '\0');
  fcntl(near.get(), F_SETFL, O_NONBLOCK);
  EXPECT_TRUE(ReceiveAll(near.get(), got.data(), got.size()).ok());
  sender.join();
  EXPECT_EQ(got, sent);
}

TEST(Socket, DescriptorsComeAlong) {
  auto [near, far] = SocketPair();
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  const Descriptor read_end(pipe_fds[0]);
  {
    const Descriptor write_end(pipe_fds[1]);
    ASSERT_TRUE(SendAll(far.get(), "with", {write_end.get()}).ok());
  }
  char bytes[4];
  std::vector<Descriptor> fds;
  ASSERT_TRUE(ReceiveAll(near.get(), bytes, sizeof(bytes), &fds).ok());
  ASSERT_EQ(fds.size(), 1);
  EXPECT_NE(fcntl(fds[0].get(), F_GETFD) & FD_CLOEXEC, 0);
  ASSERT_EQ(write(fds[0].get(), "x", 1), 1);
  char got;
  EXPECT_EQ(read(read_end.get(), &got, 1), 1);
}

TEST(Socket, DescriptorsNobodyAskedForAreClosed) {
  auto [near, far] = SocketPair();
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  const Descriptor read_end(pipe_fds[0]);
  {
    const Descriptor write_end(pipe_fds[1]);
    ASSERT_TRUE(SendAll(far.get(), "with", {write_end.get()}).ok());
  }
  char bytes[4];
  ASSERT_TRUE(ReceiveAll(near.get(), bytes, sizeof(bytes)).ok());
  char got;
  EXPECT_EQ(read(read_end.get(), &got, 1), 0);  // no writer is left
}

TEST(Socket, AClosedPeerIsCancelled) {
  auto [near, far] = SocketPair();
  ASSERT_TRUE(SendAll(far.get(), "ab").ok());
  far = Descriptor();
  char bytes[4];
  EXPECT_TRUE(absl::IsCancelled(ReceiveAll(near.get(), bytes, 4)));
  EXPECT_TRUE(absl::IsCancelled(ReceiveSome(near.get(), bytes, 4).status()));
  EXPECT_TRUE(absl::IsCancelled(SendAll(near.get(), "x")));
  EXPECT_TRUE(absl::IsCancelled(TrySend(near.get(), "x").status()));
}

TEST(Socket, WhatIsNoSocketIsInternal) {
  int pipe_fds[2];
  ASSERT_EQ(pipe2(pipe_fds, O_CLOEXEC), 0);
  const Descriptor read_end(pipe_fds[0]);
  const Descriptor write_end(pipe_fds[1]);
  char byte;
  EXPECT_TRUE(absl::IsInternal(ReceiveAll(read_end.get(), &byte, 1)));
  EXPECT_TRUE(absl::IsInternal(SendAll(write_end.get(), "x")));
}

TEST(Socket, ReceiveSomeTakesWhatIsThere) {
  auto [near, far] = SocketPair();
  char bytes[8];
  EXPECT_EQ(*ReceiveSome(near.get(), bytes, 8), 0);
  ASSERT_TRUE(SendAll(far.get(), "abc").ok());
  EXPECT_EQ(*ReceiveSome(near.get(), bytes, 2), 2);
  EXPECT_EQ(*ReceiveSome(near.get(), bytes, 8), 1);
}

TEST(Socket, TrySendNeverTears) {
  auto [near, far] = SocketPair();
  const std::string message(5000, 'm');
  size_t count = 0;
  // A part that the kernel took is completed: by then somebody reads.
  std::thread reader;
  while (true) {
    if (count == 20) {
      reader = std::thread([&near = near] {
        char bytes[4096];
        while (ReceiveAll(near.get(), bytes, 1).ok()) {
        }
      });
    }
    const absl::StatusOr<bool> sent = TrySend(far.get(), message);
    ASSERT_TRUE(sent.ok());
    if (++count == 200) break;
  }
  far = Descriptor();
  reader.join();
}

TEST(Socket, TrySendSaysWhenThereIsNoRoom) {
  auto [near, far] = SocketPair();
  bool has_room = true;
  for (int i = 0; i < 1'000'000 && has_room; ++i) {
    const absl::StatusOr<bool> sent = TrySend(far.get(), "x");
    ASSERT_TRUE(sent.ok());
    has_room = *sent;
  }
  EXPECT_FALSE(has_room);
}

}  // namespace
}  // namespace penstock

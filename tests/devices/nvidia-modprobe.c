// SPDX-License-Identifier: Apache-2.0
// Stands in for NVIDIA's setuid nvidia-modprobe, as far as it matters here: it makes the nodes that are asked for and resets
// every one to 0666, whoever runs it. Its nodes have the numbers that it was built with (NODE_MAJOR, NODE_MINOR), of a device
// that opens for everybody whom its mode lets.
// Usage: nvidia-modprobe [-c MINOR] [-u]

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static void make(const char *node) {
  mknod(node, S_IFCHR | 0666, makedev(NODE_MAJOR, NODE_MINOR));
  if (chown(node, 0, 0) != 0 || chmod(node, 0666) != 0) perror(node);
}

int main(int argc, char **argv) {
  char node[64];
  int option;
  umask(0);
  if (setuid(0) != 0) perror("setuid");
  while ((option = getopt(argc, argv, "c:u")) != -1) {
    if (option == 'c') {
      int minor = atoi(optarg);
      if (minor == 255) snprintf(node, sizeof node, "/dev/nvidiactl");
      else snprintf(node, sizeof node, "/dev/nvidia%d", minor);
      make(node);
    } else {
      make("/dev/nvidia-uvm");
      make("/dev/nvidia-uvm-tools");
    }
  }
  return 0;
}

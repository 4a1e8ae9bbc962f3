// SPDX-License-Identifier: MIT

// A peer of the tests: Go's concurrency.Mutex, by lines.
//
//	peer ENDPOINT NAME TTL
//
// "lock" is answered by "locked REVISION" when it is, "try" by that or "busy",
// "unlock" by "unlocked". The end of the input ends it, without unlocking.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

func must(err error) {
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
}

func main() {
	ttl, err := strconv.Atoi(os.Args[3])
	must(err)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{os.Args[1]}, Logger: zap.NewNop()})
	must(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	must(err)
	mutex := concurrency.NewMutex(session, os.Args[2])
	fmt.Println("ready")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		switch lines.Text() {
		case "lock":
			must(mutex.Lock(context.Background()))
			fmt.Println("locked", mutex.Header().Revision)
		case "try":
			err := mutex.TryLock(context.Background())
			if err == concurrency.ErrLocked {
				fmt.Println("busy")
				continue
			}
			must(err)
			fmt.Println("locked", mutex.Header().Revision)
		case "unlock":
			must(mutex.Unlock(context.Background()))
			fmt.Println("unlocked")
		}
	}
}

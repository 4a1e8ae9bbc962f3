// SPDX-License-Identifier: MIT
//
// peer.go - a redsync client that does what it is told, line by line.
//
//	peer PORT...
//
// "OWNER lock NAME LEASE_MS WAIT_MS"  -> "OWNER ok", "OWNER busy"
// "OWNER extend NAME LEASE_MS"        -> "OWNER ok", "OWNER lost"
// "OWNER unlock NAME"                 -> "OWNER ok", "OWNER lost"
//
// With several ports it is RedLock over as many masters.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"
)

const retry = 50 * time.Millisecond

var (
	locker *redsync.Redsync
	held   sync.Map
)

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func lock(key, name string, leaseMs, waitMs int) string {
	lease := time.Duration(leaseMs) * time.Millisecond
	mutex := locker.NewMutex(name, redsync.WithExpiry(lease),
		redsync.WithRetryDelay(retry),
		redsync.WithTries(1+waitMs/int(retry/time.Millisecond)))
	if mutex.Lock() != nil {
		return "busy"
	}
	held.Store(key, mutex)
	return "ok"
}

func carryOut(words []string) string {
	key := words[0] + " " + words[2]
	if words[1] == "lock" {
		return lock(key, words[2], number(words[3]), number(words[4]))
	}
	value, found := held.Load(key)
	if !found {
		return "lost"
	}
	mutex := value.(*redsync.Mutex)
	verb := mutex.Unlock
	if words[1] == "extend" { // by the expiry that a mutex has
		lease := time.Duration(number(words[3])) * time.Millisecond
		verb = locker.NewMutex(words[2], redsync.WithExpiry(lease),
			redsync.WithValue(mutex.Value())).Extend
	}
	if good, err := verb(); !good || err != nil {
		return "lost"
	}
	return "ok"
}

func main() {
	var pools []redis.Pool
	var printing sync.Mutex
	for _, port := range os.Args[1:] {
		pools = append(pools, goredis.NewPool(client.NewClient(
			&client.Options{Addr: "127.0.0.1:" + port})))
	}
	locker = redsync.New(pools...)
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		words := strings.Split(in.Text(), " ")
		go func() {
			answer := carryOut(words)
			printing.Lock()
			defer printing.Unlock()
			fmt.Println(words[0], answer)
		}()
	}
}

// SPDX-License-Identifier: MIT
//
// peer.go - the locks of redsync and of etcd's own client, as they come, for
// ./dev bench --peers.
//
//	peer redsync|etcd PORT
//
// "pair SECONDS" and "handover SECONDS" are answered by "SCENARIO rate p50_us
// p99_us". A hand-over is between two goroutines, each with a client of its own.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"sync"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// A lock; acquire returns what releases it.
type lock interface{ acquire() func() }

type redsyncLock struct{ sync *redsync.Redsync }

func newRedsync(port string) lock {
	return redsyncLock{redsync.New(goredis.NewPool(client.NewClient(
		&client.Options{Addr: "127.0.0.1:" + port})))}
}

func (l redsyncLock) acquire() func() {
	for { // it gives up after 32 tries
		mutex := l.sync.NewMutex("bench")
		if mutex.Lock() == nil {
			return func() {
				if good, err := mutex.Unlock(); !good || err != nil {
					panic(err)
				}
			}
		}
	}
}

type etcdLock struct{ mutex *concurrency.Mutex }

func newEtcd(port string) lock {
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"127.0.0.1:" + port}})
	must(err)
	session, err := concurrency.NewSession(etcd)
	must(err)
	return etcdLock{concurrency.NewMutex(session, "bench-go/")}
}

func (l etcdLock) acquire() func() {
	must(l.mutex.Lock(context.Background()))
	return func() { must(l.mutex.Unlock(context.Background())) }
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func print(scenario string, seconds float64, samples []time.Duration) {
	sort.Slice(samples, func(i, j int) bool { return samples[i] < samples[j] })
	n := len(samples)
	if n == 0 {
		fmt.Println(scenario, 0, seconds*1e6, seconds*1e6)
		return
	}
	fmt.Println(scenario, float64(n)/seconds,
		float64(samples[n/2].Nanoseconds())/1e3,
		float64(samples[n*99/100].Nanoseconds())/1e3)
}

func pair(l lock, seconds float64) {
	var samples []time.Duration
	end := time.Now().Add(time.Duration(seconds * 1e9))
	for now := time.Now(); now.Before(end); {
		before := now
		l.acquire()()
		now = time.Now()
		samples = append(samples, now.Sub(before))
	}
	print("pair", seconds, samples)
}

type turns struct {
	door     chan bool
	last     int
	released time.Time
	samples  []time.Duration
}

func (t *turns) take(l lock, me int, end time.Time) {
	for time.Now().Before(end) {
		t.door <- true
		release := l.acquire()
		now := time.Now()
		<-t.door
		if t.last == 1-me {
			t.samples = append(t.samples, now.Sub(t.released))
		}
		t.last = me
		select {
		case <-t.door: // the other one has come
			t.door <- true
		case <-time.After(time.Until(end)):
		}
		t.released = time.Now()
		release()
	}
}

func handover(locks [2]lock, seconds float64) {
	t := turns{last: -1, door: make(chan bool, 2)}
	end := time.Now().Add(time.Duration(seconds * 1e9))
	var both sync.WaitGroup
	for i, l := range locks {
		both.Add(1)
		go func() {
			defer both.Done()
			t.take(l, i, end)
		}()
	}
	both.Wait()
	print("handover", seconds, t.samples)
}

func main() {
	var locks [2]lock
	open := map[string]func(string) lock{"redsync": newRedsync,
		"etcd": newEtcd}[os.Args[1]]
	for i := range locks {
		locks[i] = open(os.Args[2])
		locks[i].acquire()()
	}
	fmt.Println("ready")
	for {
		var scenario string
		var seconds float64
		if n, _ := fmt.Scan(&scenario, &seconds); n != 2 {
			return
		}
		if scenario == "pair" {
			pair(locks[0], seconds)
		} else {
			handover(locks, seconds)
		}
	}
}

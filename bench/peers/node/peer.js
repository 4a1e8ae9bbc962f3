// SPDX-License-Identifier: MIT
//
// peer.js - the locks of node-redlock and redis-semaphore, as they come, for
// ./dev bench --peers.
//
//     node peer.js redlock|semaphore PORT
//
// "pair SECONDS" and "handover SECONDS" are answered by "SCENARIO rate p50_us
// p99_us". A hand-over is between two clients that wait for each other.

const readline = require("readline");
const Redis = require("ioredis");

const NAME = "bench";

// Each returns what releases again.
const kinds = {
  redlock(client) {
    const { default: Redlock } = require("redlock");
    const redlock = new Redlock([client]);
    redlock.on("error", () => {});
    return async () => {
      for (;;) {
        try {
          const lock = await redlock.acquire([NAME], 30000);
          return () => lock.release();
        } catch (error) {
          continue; // it gives up after ten tries
        }
      }
    };
  },
  semaphore(client) {
    const { Mutex } = require("redis-semaphore");
    return async () => {
      const mutex = new Mutex(client, NAME, { acquireTimeout: 60000 });
      await mutex.acquire();
      return () => mutex.release();
    };
  },
};

const now = () => Number(process.hrtime.bigint()) / 1e3;

function print(scenario, seconds, samples) {
  const n = samples.length;
  const at = (i) => (n === 0 ? seconds * 1e6 : samples[i]);

  samples.sort((a, b) => a - b);
  console.log(
    `${scenario} ${n / seconds} ${at(n >> 1)} ${at(Math.floor(n * 0.99))}`,
  );
}

async function pair(acquire, seconds) {
  const samples = [];
  const end = now() + seconds * 1e6;

  for (let at = now(); at < end; ) {
    const before = at;
    await (await acquire())();
    at = now();
    samples.push(at - before);
  }
  print("pair", seconds, samples);
}

async function handover(acquires, seconds) {
  const end = now() + seconds * 1e6;
  const samples = [];
  let atTheDoor = 0;
  let last = -1;
  let released = 0;

  async function takeTurns(acquire, me) {
    while (now() < end) {
      atTheDoor++;
      const release = await acquire();
      const at = now();
      atTheDoor--;
      if (last === 1 - me) samples.push(at - released);
      last = me;
      while (atTheDoor === 0 && now() < end)
        await new Promise((resolve) => setImmediate(resolve));
      released = now();
      await release();
    }
  }
  await Promise.all(acquires.map(takeTurns));
  print("handover", seconds, samples);
}

async function main(kind, port) {
  const acquires = [0, 1].map(() =>
    kinds[kind](new Redis(Number(port), "127.0.0.1")),
  );

  for (const end = now() + 2e6; now() < end; ) await (await acquires[0]())();
  console.log("ready");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [scenario, seconds] = line.split(" ");
    if (scenario === "pair") await pair(acquires[0], Number(seconds));
    else await handover(acquires, Number(seconds));
  }
  process.exit(0);
}

main(...process.argv.slice(2));

// SPDX-License-Identifier: MIT
//
// peer.js - a node-redlock client that does what it is told, line by line.
//
//     node peer.js PORT...
//
// "OWNER lock NAME LEASE_MS WAIT_MS"  -> "OWNER ok", "OWNER busy"
// "OWNER extend NAME LEASE_MS"        -> "OWNER ok", "OWNER lost"
// "OWNER unlock NAME"                 -> "OWNER ok", "OWNER lost"
//
// With several ports it is RedLock over as many masters.

const readline = require("readline");
const Redis = require("ioredis");
const { default: Redlock } = require("redlock");

const RETRY_MS = 50;
const clients = process.argv.slice(2).map((port) => {
  const client = new Redis(Number(port), "127.0.0.1", {
    maxRetriesPerRequest: 0,
  });
  client.on("error", () => {}); // a stopped node is part of the test
  return client;
});
const redlock = new Redlock(clients, { retryJitter: 10, retryDelay: RETRY_MS });
const held = new Map();

redlock.on("error", () => {});

async function carryOut(owner, verb, name, leaseMs, waitMs) {
  const key = owner + " " + name;

  if (verb === "lock") {
    const tries = Math.ceil(Number(waitMs) / RETRY_MS);
    try {
      held.set(
        key,
        await redlock.acquire([name], Number(leaseMs), { retryCount: tries }),
      );
    } catch (error) {
      return "busy";
    }
    return "ok";
  }
  try {
    if (verb === "extend")
      held.set(key, await held.get(key).extend(Number(leaseMs)));
    else await held.get(key).release();
  } catch (error) {
    return "lost";
  }
  return "ok";
}

Promise.all(clients.map((client) => client.ping().catch(() => {}))).then(() => {
  console.log("ready");
  readline.createInterface({ input: process.stdin }).on("line", (line) => {
    const words = line.split(" ");
    carryOut(...words).then((answer) => console.log(words[0] + " " + answer));
  }).on("close", () => process.exit(0));
});

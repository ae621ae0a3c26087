// What a game backend and a leaderboard in JavaScript do: one RPUSH, and XREAD in a loop.
//
//   REDIS_URL=redis://127.0.0.1:6379 POOL=chess-blitz node push_and_follow.mjs
//
// Prints one JSON text per line: {"pushed": <event>}, then {"changed": <entry id>, "event": <event>} for every
// entry of the change stream, and ends with 0 after the entry that its own game caused; with 1 and {"error": …}
// at a gap, or when nothing was heard for PATIENCE_MS.
// PREFIX, AFTER (the position to follow after), GAME, WINNER and LOSER may be set too.
import { randomUUID } from "node:crypto";
import { createClient } from "redis";

const {
  REDIS_URL,
  POOL,
  PREFIX = "petard",
  AFTER = "0-0",
  GAME = `node-${randomUUID()}`,
  WINNER = "alice",
  LOSER = "bob",
  PATIENCE_MS = "30000",
} = process.env;

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const event = {
  specversion: "1.0",
  id: randomUUID(),
  source: "/servers/node",
  type: "petard.game.finished.v1",
  time: new Date().toISOString(),
  data: {
    pool: POOL,
    game: GAME,
    sides: [
      { players: [WINNER], rank: 1 },
      { players: [LOSER], rank: 2 },
    ],
  },
};

function checkSuccessor(last, next) {
  const [lastEpoch, lastSeq] = last.split("-").map(BigInt);
  const [epoch, seq] = next.split("-").map(BigInt);
  const follows = last === "0-0" ? seq === 1n : epoch === lastEpoch && seq === lastSeq + 1n;
  if (!follows) throw new Error(`after ${last} comes ${next}: take a fresh snapshot`);
}

async function follow(client, last, deadline) {
  while (Date.now() < deadline) {
    const streams = await client.xRead({ key: `${PREFIX}:changes:${POOL}`, id: last }, { BLOCK: 1000, COUNT: 100 });
    for (const { id, message } of streams?.[0].messages ?? []) {
      checkSuccessor(last, id);
      last = id;
      const changed = JSON.parse(message.event);
      say({ changed: id, event: changed });
      if (changed.data.cause.id === event.id) return;
    }
  }
  throw new Error(`no change was caused by ${event.id} within ${PATIENCE_MS} ms`);
}

const client = createClient({ url: REDIS_URL });
client.on("error", (error) => process.stderr.write(`${error}\n`));
await client.connect();
try {
  await client.rPush(`${PREFIX}:events:${POOL}`, JSON.stringify(event));
  say({ pushed: event });
  await follow(client, AFTER, Date.now() + Number(PATIENCE_MS));
} catch (error) {
  say({ error: error.message });
  process.exitCode = 1;
} finally {
  await client.close();
}

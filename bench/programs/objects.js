// SPDX-License-Identifier: Apache-2.0
// Many objects in JavaScript: records, strings, arrays and maps, most of them garbage soon, and
// buffers, whose bytes come from malloc and not from the engine's own heap. As a web bridge of a
// robot does. Each run does the same work.
'use strict';

const ROUNDS = 4, RECORDS = 10000, KEPT = 300;

let state = 1;
function draw() {
  state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
  return state >> 8;
}

function record(id) {
  const points = [];
  for (let i = draw() % 8; i > 0; i--) points.push({x: draw() / 977, y: draw() / 977});
  const data = Buffer.alloc(64 + draw() % 16000, id);
  return {id, name: 'landmark-' + draw() % 5000, points, data};
}

function round(kept) {
  const groups = new Map();
  for (let i = 0; i < RECORDS; i++) {
    const one = record(i);
    if (!groups.has(one.name)) groups.set(one.name, []);
    groups.get(one.name).push(one);
    kept[draw() % KEPT] = one;
  }
  const plain = [...groups].map(([name, list]) => [name, list.map((one) => one.points)]);
  const again = JSON.parse(JSON.stringify(plain));
  return again.reduce((sum, [, list]) => sum + list.length, 0);
}

const kept = new Array(KEPT);
for (let i = 0; i < ROUNDS; i++)
  if (round(kept) !== RECORDS) throw new Error('records are missing');
for (const one of kept)
  if (one && one.data[one.data.length - 1] !== one.id % 256) throw new Error('a buffer changed');

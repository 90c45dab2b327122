// Draws icon.png: a line of code, the cursor, and behind it in grey what could come next. `node images/icon.mjs`
import { writeFileSync } from "node:fs";
import { crc32, deflateSync } from "node:zlib";

const SIZE = 128; // pixels, as VS Code wants it
const GRID = 4; // samples per pixel and direction, for smooth edges
// Rounded boxes from back to front: left, top, right, bottom, radius, colour.
const BOXES = [
  [0, 0, 128, 128, 26, [30, 36, 48]],
  [20, 34, 84, 46, 6, [222, 228, 238]],
  [20, 58, 56, 70, 6, [222, 228, 238]],
  [63, 52, 68, 76, 2.5, [92, 184, 255]],
  [75, 58, 108, 70, 6, [112, 122, 140]],
  [20, 82, 92, 94, 6, [112, 122, 140]],
];

function inside([left, top, right, bottom, radius], x, y) {
  const dx = Math.max(left + radius - x, x - (right - radius), 0);
  const dy = Math.max(top + radius - y, y - (bottom - radius), 0);
  return dx * dx + dy * dy <= radius * radius;
}

function pixel(column, row) {
  const sum = [0, 0, 0, 0];
  for (let sample = 0; sample < GRID * GRID; sample += 1) {
    const x = column + ((sample % GRID) + 0.5) / GRID;
    const y = row + (Math.floor(sample / GRID) + 0.5) / GRID;
    const box = BOXES.findLast((each) => inside(each, x, y));
    if (box) {
      box[5].forEach((value, channel) => (sum[channel] += value));
      sum[3] += 1;
    }
  }
  const seen = sum[3] || 1;
  return [sum[0] / seen, sum[1] / seen, sum[2] / seen, (255 * sum[3]) / (GRID * GRID)].map(Math.round);
}

function chunk(name, data) {
  const body = Buffer.concat([Buffer.from(name, "latin1"), data]);
  const ends = Buffer.alloc(8);
  ends.writeUInt32BE(data.length, 0);
  ends.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([ends.subarray(0, 4), body, ends.subarray(4)]);
}

const rows = [];
for (let row = 0; row < SIZE; row += 1) {
  rows.push(0); // no filter
  for (let column = 0; column < SIZE; column += 1) {
    rows.push(...pixel(column, row));
  }
}
const header = Buffer.alloc(13);
header.writeUInt32BE(SIZE, 0);
header.writeUInt32BE(SIZE, 4);
header.set([8, 6, 0, 0, 0], 8); // 8 bits, colours with transparency
const signature = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const png = [signature, chunk("IHDR", header), chunk("IDAT", deflateSync(Buffer.from(rows))), chunk("IEND", Buffer.alloc(0))];
writeFileSync(new URL("icon.png", import.meta.url), Buffer.concat(png));

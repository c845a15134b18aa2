/** Damage to files as disks, networks and other programs cause it, the same for the same seed. */

/** Linear congruential: numbers from 0 to `below`, exclusive. */
export function randomOf(seed: number): (below: number) => number {
  let state = (Math.imul(seed, 2654435761) ^ 0x9e3779b9) >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const numbers = [0, 1, -1, 0x7fffffff, -0x80000000, 0xffff, 1 << 20, 1 << 30];
const tokens = [
  '"',
  '""',
  ',',
  '\n',
  '\r\n',
  '\0',
  '::',
  '\t',
  '\xff',
  '\xe2\x82',
  '9'.repeat(30),
  '-',
  '.',
  'e',
  '1e999',
  'nan',
  '\ufeff',
  ' ',
  'x'.repeat(5000),
  '"'.repeat(99),
];

/** One to four random damages. `other`: a file of the same kind, from which parts are copied. */
export function mutate(bytes: Uint8Array, other: Uint8Array, seed: number, isText: boolean): Uint8Array {
  const random = randomOf(seed);
  let result = Buffer.from(bytes);
  for (let left = 1 + random(4); left > 0; left--)
    result = damage(result, Buffer.from(other), random, isText);
  return new Uint8Array(result);
}

function damage(
  bytes: Buffer<ArrayBuffer>,
  other: Buffer,
  random: (below: number) => number,
  isText: boolean,
): Buffer<ArrayBuffer> {
  // The ends of files hold their footers, the beginnings their schemas: half of the damage goes there.
  const near = (length: number) =>
    [random(length), Math.max(0, length - 1 - random(Math.min(length, 600))), random(Math.min(length, 600))][
      random(3)
    ];
  if (bytes.length < 8) return Buffer.concat([bytes, other.subarray(0, random(50))]);
  const at = near(bytes.length);
  const splice = (remove: number, insert: Buffer) =>
    Buffer.concat([bytes.subarray(0, at), insert, bytes.subarray(at + remove)]);
  if (isText && random(2) === 0)
    return splice(random(3), Buffer.from(tokens[random(tokens.length)], random(2) === 0 ? 'latin1' : 'utf8'));
  switch (random(8)) {
    case 0:
      bytes[at] ^= 1 << random(8);
      return bytes;
    case 1:
      bytes[at] = [0, 255, 127, 128, random(256)][random(5)];
      return bytes;
    case 2:
      bytes.writeInt32LE(numbers[random(numbers.length)] | 0, Math.min(at, bytes.length - 4));
      return bytes;
    case 3:
      return bytes.subarray(0, at);
    case 4:
      return splice(random(200), Buffer.alloc(0));
    case 5:
      return splice(0, Buffer.from(bytes.subarray(near(bytes.length)).subarray(0, random(200))));
    case 6:
      return splice(random(2) * 50, Buffer.from(Array.from({ length: random(100) }, () => random(256))));
    default:
      return splice(random(200), Buffer.from(other.subarray(near(other.length)).subarray(0, random(400))));
  }
}

import { describe, expect, it } from 'vitest';
import { ByteCursor } from '../../../connectors/compression/byte-cursor.ts';

async function* chunks(): AsyncGenerator<Uint8Array> {
  yield* [Uint8Array.of(1, 2, 3), Uint8Array.of(4, 5), Uint8Array.of(6), Uint8Array.of(7, 8)];
}

describe('a cursor', () => {
  it('gives back the chunks that it copied whole, once it needs the next one', async () => {
    const used: number[][] = [];
    const cursor = new ByteCursor(chunks(), (chunk) => used.push([...chunk]));
    const bytes = new Uint8Array(6);
    expect(await cursor.copyInto(bytes)).toBe(6);
    expect([...bytes]).toEqual([1, 2, 3, 4, 5, 6]);
    expect(used).toEqual([
      [1, 2, 3],
      [4, 5],
    ]);
    expect(await cursor.copyInto(bytes)).toBe(2);
    expect(used.slice(2)).toEqual([[6], [7, 8]]);
  });

  it('keeps chunks of which a caller has a view', async () => {
    const used: number[][] = [];
    const cursor = new ByteCursor(chunks(), (chunk) => used.push([...chunk]));
    expect([...((await cursor.some(1)) ?? [])]).toEqual([1]);
    expect(await cursor.copyInto(new Uint8Array(3))).toBe(3);
    expect([...(await cursor.take(2))]).toEqual([5, 6]);
    expect(await cursor.copyInto(new Uint8Array(3))).toBe(2);
    expect(used).toEqual([[7, 8]]);
  });
});

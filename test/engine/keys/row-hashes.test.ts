import { Dictionary, Int32, LargeUtf8, Utf8, Utf8View, vectorFromArray } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { hashRows } from '../../../engine/keys/row-words.ts';

describe('hashes of rows', () => {
  it('are those of the texts, however these are stored', () => {
    const texts = ['a', 'b', null, 'a text that is too long for a view', '', 'b'];
    const hashes = [Utf8, LargeUtf8, Utf8View].map((Type) => [
      ...hashRows([vectorFromArray(texts, new Type()).data[0]], texts.length),
    ]);
    expect(new Set(hashes[0]).size).toBe(5);
    expect(hashes[1]).toEqual(hashes[0]);
    expect(hashes[2]).toEqual(hashes[0]);
    for (const Type of [Utf8, Utf8View]) {
      const type = new Dictionary(new Type(), new Int32());
      expect([...hashRows([vectorFromArray(texts, type).data[0]], texts.length)]).toEqual(hashes[0]);
    }
  });
});

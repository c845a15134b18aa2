import { describe, expect, it } from 'vitest';
import { shownName } from '../../cli/report/facts.ts';

describe('a name in a table', () => {
  it('is one line of at most 60 characters, and nothing without a name', () => {
    expect(shownName('Alien\n\t(1979)')).toBe('Alien (1979)');
    expect(shownName('\u{1F600}'.repeat(70))).toBe(`${'\u{1F600}'.repeat(59)}…`);
    expect([shownName(null), shownName(undefined)]).toEqual(['', '']);
  });

  it('neither acts on the terminal nor turns what follows around', () => {
    expect(shownName('\u001b[31mred\u009b')).toBe('\ufffd[31mred\ufffd');
    expect(shownName('\u202etxt\u2066.exe')).toBe('txt.exe');
    expect(shownName('שלום עולם')).toBe('שלום עולם');
  });
});

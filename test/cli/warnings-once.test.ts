/**
 * A warning is printed once, even if several steps find it: in the result if it is about the model, else on
 * stderr.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { noEvents } from '../../engine/events.ts';
import { warnOnce } from '../../cli/run-cli.ts';
import { factorflow, ratings, temporaryFolder } from './run-cli.ts';

const folder = temporaryFolder();
const likes = join(folder, 'likes.csv');
const pairs = Array.from({ length: 600 }, (_, k) => `${k % 40},${(7 * k) % 30},1`);
writeFileSync(likes, `user,item,rating\n${pairs.join('\n')}\n5,,1\n`);

const fast = ['--rank', '2', '--max-iter', '1', '--device', 'cpu', '--workers', '1', '--on-bad-rows', 'skip'];

/** The warnings of a command, each with the number of times that it was printed. */
async function warningsOf(...args: readonly string[]): Promise<Map<string, number>> {
  const { code, stderr, stdout } = await factorflow(...args);
  expect(code).toBe(0);
  const counts = new Map<string, number>();
  for (const [, text] of `${stderr}\n${stdout}`.matchAll(/^(?:factorflow: )?warning: (.*)$/gm))
    counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

describe('warnings', () => {
  it('are passed on once for each code and text', () => {
    const seen: unknown[] = [];
    const events = warnOnce((event) => seen.push(event));
    const warning = { type: 'warning', code: 'a', text: 'x' } as const;
    const note = { type: 'note', text: 'x' } as const;
    const others = [
      { ...warning, code: 'b' },
      { ...warning, text: 'y' },
      { type: 'warning', text: 'x' } as const,
    ];
    for (const event of [warning, warning, note, note, ...others, ...others]) events(event);
    expect(seen).toEqual([warning, note, note, ...others]);
    expect(() => warnOnce(noEvents)(note)).not.toThrow();
  });

  it.each<[string, string[]]>([
    [
      'train with a page',
      [
        'train',
        likes,
        '--test-fraction',
        '0.2',
        '--model-dir',
        join(folder, 'page'),
        '--report',
        join(folder, 'page.html'),
      ],
    ],
    ['tune', ['tune', likes, '--model-dir', join(folder, 'tuned'), '--try', 'reg-param=0.01,0.1,1']],
    ['plan --analyze', ['plan', likes, '--analyze', '--test-fraction', '0.2']],
  ])('appear once in %s', async (_, args) => {
    const found = await warningsOf(...args, ...fast);
    expect([...found.keys()].some((text) => /left out \d bad row/.test(text))).toBe(true);
    expect([...found.keys()].some((text) => /ratings are 1: /.test(text))).toBe(true);
    expect([...found.values()].filter((times) => times !== 1)).toEqual([]);
  });

  it('that a model is no better than means appears once', async () => {
    const found = await warningsOf(
      'train',
      ratings,
      '--test-fraction',
      '0.1',
      '--rank',
      '4',
      '--max-iter',
      '1',
      '--reg-param',
      '0',
      '--no-biases',
      '--device',
      'cpu',
      '--model-dir',
      join(folder, 'bad'),
      '--quiet',
    );
    expect([...found]).toEqual([[expect.stringMatching(/test RMSE, .* is no better than/), 1]]);
  });
});

/** A training with a report, of items whose names are code in HTML. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect } from 'vitest';
import { argv, factorflow as runCli } from './run-cli.ts';

const folder = mkdtempSync(join(tmpdir(), 'factorflow-report-'));
export const path = (name: string) => join(folder, name);
export const ratings = path('ratings <b>&amp;.csv');
export let page = '';

beforeAll(async () => {
  const lines = Array.from(
    { length: 3000 },
    (_, k) => `${(7 * k) % 101},<img src=x onerror=alert(${k % 40})>,${1 + (((k % 101) + (k % 40)) % 5)}`,
  );
  writeFileSync(ratings, `user,item,rating\n${lines.join('\n')}\n`);
  const { code, stderr } = await runCli(
    ...argv`train ${ratings} --model-dir ${path('model')} --test-fraction 0.1 --rank 4 --max-iter 3
    --workers 1 --device cpu --report ${path('train.html')} --quiet`,
  );
  expect([code, stderr]).toEqual([0, expect.any(String)]);
  page = readFileSync(path('train.html'), 'utf8');
  copyFileSync(path('train.html'), path('shown.html'));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Session } from '../../../index.ts';
import { factorflow, fails, json, start, temporaryFolder, trainedModel } from '../run-cli.ts';

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
const input = path('in.csv');
writeFileSync(input, 'user,item,rating,=title\n1,2,-3.5,"=HYPERLINK(""http://x"")"\n3,4,5,-1\n5,6,1,plain\n');
const rows = [`1,2,-3.5,"'=HYPERLINK(""http://x"")"`, "3,4,5.0,'-1", '5,6,1.0,plain'];
const escaped = `user,item,rating,'=title\n${rows.join('\n')}\n`;
const onCpu = ['--device', 'cpu', '--workers', '1', '--quiet'];

describe('--escape-formulas', () => {
  it('of convert, to stdout and to folders', async () => {
    const { stdout } = await start(['convert', input, '-', '--to', 'csv', '--escape-formulas', '--quiet'])
      .outcome;
    expect(stdout).toBe(escaped);
    await json('convert', input, path('by'), '--to', 'csv', '--partition-by', 'user', '--escape-formulas');
    expect(readFileSync(path('by/user=3/part-00000.csv'), 'utf8')).toBe("item,rating,'=title\n4,5.0,'-1\n");
  });

  it('of split, and of predict for the columns that it passes on', async () => {
    const parts = path('parts');
    await json('split', input, '--output', parts, '--folds', '2', '--to', 'csv', '--escape-formulas');
    const tests = [1, 2].map((fold) =>
      readFileSync(join(parts, `fold-${fold}/test.csv`), 'utf8').split('\n'),
    );
    expect(tests.map(([header]) => header)).toEqual(Array(2).fill("user,item,rating,'=title"));
    expect(tests.flatMap((lines) => lines.slice(1, -1)).sort()).toEqual(rows);
    const output = path('predicted.csv');
    const flags = ['--output', output, '--escape-formulas', ...onCpu];
    expect((await factorflow('predict', await trainedModel(), input, ...flags)).code).toBe(0);
    expect(readFileSync(output, 'utf8')).toMatch(
      /^user,item,rating,'=title,prediction\n1,2,-3\.5,"'=HYPERLINK/,
    );
  });

  it('of recommend, for titles', async () => {
    const [names, output] = [path('names.csv'), path('recommended.csv')];
    writeFileSync(names, 'item,title\n111161,@SUM(1)\n');
    const flags = ['--users', '26', '--allow', '111161', '--item-names', names, '--escape-formulas'];
    const { code } = await factorflow(
      'recommend',
      await trainedModel(),
      ...flags,
      '--output',
      output,
      ...onCpu,
    );
    expect(code).toBe(0);
    expect(readFileSync(output, 'utf8')).toContain(",'@SUM(1),");
  });

  it('is refused for other formats, before anything is read', async () => {
    const refused = /--escape-formulas acts only on text, and the output is (parquet|ndjson|arrow)/;
    for (const output of ['x', 'x.parquet', 'x.ndjson', 'x.arrow'])
      await fails(2, refused, 'convert', input, path(output), '--escape-formulas');
    await fails(2, refused, 'convert', input, path('x'), '--partition-by', 'user', '--escape-formulas');
    const late = path('late.csv');
    writeFileSync(late, 'user,item,rating\n1,2\n');
    await fails(2, refused, 'split', late, '--output', path('x'), '--folds', '2', '--escape-formulas');
    expect(readdirSync(folder).filter((name) => name.startsWith('x'))).toEqual([]);
  });
});

it('escapeFormulas is an option of write.csv alone', async () => {
  await using session = await Session.create({ workers: 1, device: 'cpu' });
  const data = session.fromRows([{ user: 1, title: '=1' }]);
  await data.write.csv(path('api.csv'), { escapeFormulas: true });
  expect(readFileSync(path('api.csv'), 'utf8')).toBe("user,title\n1,'=1\n");
  await data.write.partitionBy('user').csv(path('api'), { escapeFormulas: true });
  expect(readFileSync(path('api/user=1/part-00000.csv'), 'utf8')).toBe("title\n'=1\n");
  await expect(data.write.ndjson(path('api.ndjson'), { escapeFormulas: true } as never)).rejects.toThrow(
    /unknown option escapeFormulas of write\.ndjson/,
  );
});

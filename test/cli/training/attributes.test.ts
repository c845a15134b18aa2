import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { argv, factorflow, objectOf, quick, ratings, refusals } from '../run-cli.ts';

const folder = temporaryFolder();
const at = (name: string) => join(folder, name);
const titles = ratings.replace('ratings.parquet', 'titles.parquet');

/** A small shop: ids with zeros in front, and products that nobody has bought. */
beforeAll(() => {
  const products = Array.from({ length: 30 }, (_, i) => [
    `0${100 + i}`,
    ['tea', 'cup', 'pot'][i % 3],
    5 + (i % 7) / 2,
  ]);
  writeFileSync(at('products.csv'), `sku,kind,price\n${products.map((row) => row.join()).join('\n')}\n`);
  const bought = Array.from({ length: 400 }, (_, n) => [
    `c${n % 40}`,
    `0${100 + ((n * 7) % 24)}`,
    1 + (n % 5),
  ]);
  writeFileSync(at('bought.csv'), `customer_id,sku,rating\n${bought.map((row) => row.join()).join('\n')}\n`);
});

describe('extend', () => {
  it('adds new products to a saved model without training, and counts what it met', async () => {
    const train = await factorflow(
      ...argv`train ${at('bought.csv')} --model-dir ${at('before')} ${quick} --item-attributes ${at('products.csv')} --types sku=utf8 --quiet`,
    );
    expect(train.code).toBe(0);
    const rows = ['0900,tea,6', '0901,mug,7', '0101,tea,6', '0129,cup,6', ',tea,5'];
    writeFileSync(at('new.csv'), `product,kind,price\n${rows.join('\n')}\n`);
    const { code, stdout, stderr } = await factorflow(
      ...argv`extend ${at('before')} --item-attributes ${at('new.csv')} --item-attributes-id-col product --model-dir ${at('after')} --json`,
    );
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(
        '2 items added by their attributes, 1 without ratings got factors of their new attributes, 1 are known and keep their factors, ' +
          '1 value that the training did not know or left out as rare, 1 row without an id left out',
      ),
    ]);
    const counts = { added: 2, changed: 1, kept: 1, bare: 0, unknownValues: 1, withoutId: 1, all: 32 };
    expect(objectOf(stdout)).toMatchObject({ command: 'extend', items: counts, model: at('after') });
    const { stdout: found } = await factorflow(...argv`recommend ${at('after')} --users c1 -n 40 --quiet`);
    expect(found).toContain('0900');
    // Once more, with text for people.
    const again = await factorflow(
      ...argv`extend ${at('after')} --item-attributes ${at('products.csv')} --model-dir ${at('same')} --quiet`,
    );
    expect(again.stdout).toContain('items  32, 0 of them new');
  });

  it.each(refusals`
    extend ${at('before')} --model-dir ${at('x')} | extend needs --item-attributes or --user-attributes
    extend ${at('before')} --model-dir ${at('x')} --item-attributes ${at('new.csv')} | there is no column "sku"
    extend ${at('before')} --model-dir ${at('x')} --user-attributes ${at('new.csv')} | the model has no attributes of users
    extend ${at('before')} --model-dir ${at('after')} --item-attributes ${at('new.csv')} | exists
    extend ${at('before')} --model-dir ${at('before')} --item-attributes ${at('new.csv')} --force | before
    extend ${at('before')} --model-dir ${at('x')} --user-attributes-id-col u --item-attributes ${at('new.csv')} | --user-attributes-id-col acts only with --user-attributes
    extend ${at('before')} --model-dir ${at('x')} --item-attributes-id-col kind --item-attributes ${at('new.csv')} | is the name of a column of ids, got "kind"
  `)('refuses %j', async (line, message) => {
    const { code, stderr } = await factorflow(...line, '--quiet');
    expect([2, 3]).toContain(code);
    expect(stderr).toMatch(message);
  });
});

describe('train --item-attributes', () => {
  it('adds products without ratings to the model, and says what the attributes are', async () => {
    const { code, stdout, stderr } = await factorflow(
      ...argv`train ${at('bought.csv')} --model-dir ${at('shop')} ${quick} --item-attributes ${at('products.csv')} --types sku=utf8`,
    );
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining('attributes of 30 items, 5 features: kind: category, 3 values; price: number'),
    ]);
    expect(stdout).toContain('items       30 (6 without ratings, by their attributes)');
    const lists = await factorflow(
      ...argv`recommend ${at('shop')} --users c1 -n 30 --output ${at('lists.csv')} --quiet`,
    );
    expect([lists.code, lists.stderr]).toEqual([0, '']);
    expect(readFileSync(at('lists.csv'), 'utf8')).toContain('0129');
    const rated = await factorflow(
      ...argv`recommend ${at('shop')} --users c1 -n 30 --output ${at('rated.csv')} --cold-items exclude --quiet`,
    );
    expect(rated.code).toBe(0);
    expect(readFileSync(at('rated.csv'), 'utf8').trim().split('\n')).toHaveLength(25);
  });

  it('is evaluated on new products apart', async () => {
    writeFileSync(at('test.csv'), 'customer_id,sku,rating\nc1,0101,2\nc1,0125,4\nc2,0126,3\nc2,0999,3\n');
    const flags = argv`evaluate ${at('shop')} ${at('test.csv')} --types sku=utf8 --quiet`;
    const errors = await factorflow(...flags);
    expect([errors.code, errors.stderr]).toEqual([0, '']);
    expect(errors.stdout).toMatch(
      /pairs +4\n +warm pairs +1: RMSE \d\S+, MAE \d\S+\n +cold pairs +2: RMSE .*by attributes\n +unknown pairs +1 /,
    );
    expect(objectOf((await factorflow(...flags, '--json')).stdout)).toMatchObject({
      warm: { pairs: 1 },
      cold: { pairs: 2 },
      coldPairs: 1,
    });
    const ranking = await factorflow(
      ...argv`${flags} --ranking --k 5 --exclude ${at('bought.csv')} --report ${at('ranked.html')}`,
    );
    expect([ranking.code, ranking.stderr]).toEqual([0, expect.not.stringContaining('Error')]);
    expect(ranking.stdout).toMatch(/metric +model +95 % +warm +cold +popularity/);
    expect(ranking.stdout).toMatch(/cold pairs +2 .* 2 users\n +unknown pairs +1 .*\(1 items\)/);
    expect(readFileSync(at('ranked.html'), 'utf8')).toMatch(/<th[^>]*>warm<\/th><th[^>]*>cold<\/th>/);
  });

  it("is explained by the item's attributes, once they are given", async () => {
    const flags = argv`explain ${at('shop')} ${at('bought.csv')} --types sku=utf8 --user c1 --item 0125 -n 2`;
    const bare = await factorflow(...flags);
    expect([bare.code, bare.stderr]).toEqual([0, '']);
    expect(bare.stdout).toContain("does not store the item's attributes: give them by --item-attributes");
    const given = await factorflow(...flags, ...argv`--item-attributes ${at('products.csv')}`);
    expect(given.stdout).toMatch(/because of +│ +share .*\n.*\n│ (kind = cup|price = 7 ) +│ +-?0\.\d{4} │\n/);
    const { stdout } = await factorflow(
      ...flags,
      ...argv`--item-attributes ${at('products.csv')} --json --quiet`,
    );
    expect(objectOf(stdout)).toMatchObject({ userAttributes: null, itemAttributes: { length: 2 } });
    expect(objectOf((await factorflow(...flags, '--json', '--quiet')).stdout)).toMatchObject({
      itemAttributes: null,
    });
  });

  it('is shown by inspect', async () => {
    const { stdout } = await factorflow(...argv`inspect ${at('shop')}`);
    expect(stdout).toMatch(/item attributes +kind: category, 3 values; price: number, mean /);
  });

  it('takes columns with their kinds, and a plan has their sizes', async () => {
    const flags = argv`--item-attributes ${titles} --item-attributes-id-col item --item-attributes-cols genre:values --attributes-min-count 5`;
    const { code, stdout } = await factorflow(...argv`plan ${ratings} ${quick} --json --quiet`, ...flags);
    expect(code).toBe(0);
    expect(objectOf(stdout)).toMatchObject({ plan: { sizes: { itemFeatures: 25 } } });
  });

  it.each(refusals`
    train ${ratings} --model-dir m --item-attributes-cols genre | --item-attributes-cols acts only with --item-attributes
    train ${ratings} --model-dir m --attributes-min-count 3     | --attributes-min-count acts only with --item-attributes or --user-attributes
    train ${ratings} --model-dir m --item-attributes ${titles} --algorithm sgd | --item-attributes cannot be used with --algorithm sgd
    train ${ratings} --model-dir m --item-attributes ${titles} --init-model other | --item-attributes cannot be used with --init-model
    train ${ratings} --model-dir ${at('m')} --item-attributes ${titles} --item-attributes-cols genres | there is no such column \(column "genres"\). Did you mean genre
    train ${ratings} --model-dir ${at('m')} --item-attributes ${titles} --item-attributes-cols genre:vector | the column "genre" is Utf8, which cannot be an attribute \(vector\)
    train ${ratings} --model-dir ${at('m')} --item-attributes missing.csv | no such file
    explain ${at('shop')} ${at('bought.csv')} --types sku=utf8 --user c1 --item 0125 --user-attributes ${at('products.csv')} | the model has no attributes of users
    explain ${at('shop')} ${at('bought.csv')} --types sku=utf8 --user c1 --item 0125 --item-attributes ${at('bought.csv')} | there is no such column
    fold-in ${at('shop')} ${at('bought.csv')} --output ${at('x.parquet')} --user-attributes ${at('products.csv')} | the model has no attributes of users
  `)('refuses %j', async (line, message) => {
    const { code, stderr } = await factorflow(...line, '--quiet');
    expect([2, 3]).toContain(code);
    expect(stderr).toMatch(message);
  });

  it('shows in the report the attributes that move predictions most', async () => {
    const { code } = await factorflow(
      ...argv`train ${ratings} --model-dir ${at('films')} ${quick} --item-attributes ${titles} --item-attributes-cols genre --report ${at('page.html')} --quiet`,
    );
    expect(code).toBe(0);
    expect(readFileSync(at('page.html'), 'utf8')).toMatch(/<h2>Attributes<\/h2>[^]*<td[^>]*>genre<\/td>/);
  });
});

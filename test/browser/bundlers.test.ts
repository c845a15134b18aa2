/** Programs that import factorflow/browser, bundled by each bundler: they run, and have only what they use. */
import { build as esbuild } from 'esbuild';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build as vite } from 'vite';
import { beforeAll, describe, expect, it } from 'vitest';
import webpack from 'webpack';
import { gzipSync } from 'node:zlib';
import type { openModel } from '../../browser/index.ts';
import { ALS, type Model } from '../../index.ts';
import { isDeep } from '../support/deep.ts';
import { randomRatings } from '../support/ratings.ts';
import { served } from './page-server.ts';

/** Bundles program `name` of the folder into `name`-`bundler`.mjs, and gives the path of that file. */
type Bundler = (folder: string, name: string) => Promise<string>;

const root = resolve(import.meta.dirname, '../..');
const built = join(root, 'dist/page/index.js');
const triples = randomRatings(12, 50, 60, 900);
const site = served();
const { folder } = site;
const programs = {
  recommend: "export { openModel } from 'factorflow/browser';",
  names: "import { ItemNames } from 'factorflow/browser';\nexport default new ItemNames([[1, 'M']]).get(1);",
};

const bundlers: Readonly<Record<string, Bundler>> = {
  esbuild: async (folder, name) => {
    const outfile = join(folder, `${name}-esbuild.mjs`);
    const entryPoints = [join(folder, `${name}.js`)];
    const options = { bundle: true, format: 'esm', platform: 'browser', minify: true } as const;
    const { warnings } = await esbuild({ entryPoints, outfile, ...options });
    expect(warnings).toEqual([]);
    return outfile;
  },
  webpack: (folder, name) => {
    const filename = `${name}-webpack.mjs`;
    const compiler = webpack({
      mode: 'production',
      target: 'web',
      context: folder,
      entry: `./${name}.js`,
      experiments: { outputModule: true },
      output: { path: folder, filename, library: { type: 'module' } },
      performance: false,
    });
    return new Promise((done, fail) =>
      compiler.run((error, stats) => {
        if (error || stats === undefined) return fail(error ?? new Error('webpack gives no result'));
        const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
        if (errors?.length || warnings?.length)
          return fail(new Error([...errors!, ...warnings!].map(({ message }) => message).join('\n')));
        compiler.close(() => done(join(folder, filename)));
      }),
    );
  },
  Vite: async (folder, name) => {
    const lib = { entry: join(folder, `${name}.js`), formats: ['es'] as 'es'[], fileName: () => file };
    const file = `${name}-vite.mjs`;
    await vite({
      root: folder,
      configFile: false,
      logLevel: 'error',
      build: { lib, outDir: '.', emptyOutDir: false },
    });
    return join(folder, file);
  },
};

let model: Model;
beforeAll(async () => {
  model = await new ALS({ rank: 6, maxIter: 2, seed: 3 }).fit(site.session.fromRows(triples));
  await model.save(join(folder, 'model'));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules/factorflow'));
  for (const [name, text] of Object.entries(programs)) writeFileSync(join(folder, `${name}.js`), text);
});
// webpack takes longer than the others together.
describe.each(Object.entries(bundlers).filter(([name]) => isDeep || name !== 'webpack'))(
  'factorflow/browser, bundled by %s',
  (_, bundle) => {
    it('recommends as in Node, without the code of training', async () => {
      const file = await bundle(folder, 'recommend');
      const bundled = (await import(pathToFileURL(file).href)) as { readonly openModel: typeof openModel };
      const page = await bundled.openModel(`${site.server.url}/model`);
      const ratings = triples.slice(0, 4).map(({ item, rating }) => ({ item, rating }));
      expect(await page.recommend({ ratings }, 9)).toEqual(await model.recommend({ ratings }, 9));
      await page.close();
      await expect(bundled.openModel(`${site.server.url}/none`)).rejects.toMatchObject({
        name: 'DataError',
      });
      const [whole, code] = [readFileSync(built), readFileSync(file)];
      const onlyOfTraining = 'a page trains on at most';
      expect([whole.includes(onlyOfTraining), code.includes(onlyOfTraining)]).toEqual([true, false]);
      expect(gzipSync(code).length).toBeLessThan(0.7 * gzipSync(whole).length);
    });
  },
);

// webpack leaves out as much, and takes 5 s for it.
it.each(['esbuild', 'Vite'])('a program that only has names is small, bundled by %s', async (bundler) => {
  const code = readFileSync(await bundlers[bundler](folder, 'names'));
  expect(code.length).toBeLessThan(46_500);
});

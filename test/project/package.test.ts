import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const read = (file: string) =>
  JSON.parse(readFileSync(join(root, file), 'utf8')) as Record<string, Record<string, string>>;

describe('package.json', () => {
  const manifest = read('package.json');

  it('admits compatible releases of what users install, and exact ones of what builds it', () => {
    const users = {
      ...manifest.dependencies,
      ...manifest.optionalDependencies,
      ...manifest.peerDependencies,
    };
    for (const [name, range] of Object.entries(users)) {
      // Releases from 25.9 on have types that TypeScript 5.4 cannot read.
      const sign = name === 'flatbuffers' ? '~' : '\\^';
      expect(`${name} ${range}`).toMatch(new RegExp(` ${sign}\\d+\\.\\d+\\.\\d+$`));
    }
    for (const [name, version] of Object.entries(manifest.devDependencies))
      expect(`${name} ${version}`).toMatch(/ (npm:[\w-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/);
  });

  it('has few dependencies; a new one is a decision to be written down here', () => {
    expect(Object.keys(manifest.dependencies).sort()).toEqual([
      'apache-arrow', // record batches
      'cli-progress', // progress bars
      'cli-table3', // tables on the terminal
      'flatbuffers', // Arrow's own dependency, held where its types are those of TypeScript 5.4
      'hyparquet', // Parquet footers, decoded
      'parquetjs-lite', // the second Parquet backend
      'picomatch', // patterns, as tinyglobby reads them
      'piscina', // worker-thread pools
      're2js', // regular expressions in linear time: those of JavaScript may take exponential time
      'tinyglobby', // globs
      'yargs', // the command line: commands, flags and the texts of --help
    ]);
    // Only for `serve`, so that it is not installed with the library.
    expect(Object.keys(manifest.peerDependencies)).toEqual(['fastify']);
    expect(manifest.peerDependenciesMeta).toEqual({ fastify: { optional: true } });
    // Of the build: bundles declarations as rolldown does modules, and asks no compiler for them.
    expect(manifest.devDependencies).toHaveProperty('rolldown-plugin-dts');
    // Three quarters of an installation, and of use only with a GPU.
    expect(Object.keys(manifest.optionalDependencies)).toEqual(['webgpu']); // Dawn: kernels on GPUs
  });

  it('runs nothing of its own at installation', () => {
    for (const script of ['preinstall', 'install', 'postinstall', 'prepare'])
      expect(manifest.scripts).not.toHaveProperty(script);
  });

  it('has the version of the plugin for Apache Spark, which compares them', () => {
    const [pom, wheel] = ['spark/pom.xml', 'spark/python/pyproject.toml'].map((file) =>
      readFileSync(join(root, file), 'utf8'),
    );
    expect(/^ {2}<version>(.*)<\/version>$/m.exec(pom)?.[1]).toBe(manifest.version);
    expect(/^version = "(.*)"$/m.exec(wheel)?.[1]).toBe(manifest.version);
  });

  it('is locked to one version of each, with no download address', () => {
    const lock = readFileSync(join(root, 'package-lock.json'), 'utf8');
    expect(lock).not.toContain('"resolved"');
    const packages = (JSON.parse(lock) as { packages: Record<string, { version: string }> }).packages;
    for (const [name, version] of Object.entries(manifest.devDependencies))
      expect(packages[`node_modules/${name}`].version).toBe(version.replace(/^npm:.*@/, ''));
    // Within one major release, or one minor release below 1.0.
    for (const [name, range] of Object.entries({
      ...manifest.dependencies,
      ...manifest.optionalDependencies,
    })) {
      const series = /^[~^](0\.\d+|\d+)\./.exec(range)?.[1];
      expect(`${name} ${packages[`node_modules/${name}`].version}`).toMatch(new RegExp(` ${series}\\.`));
    }
  });

  it('is locked for every platform, also those whose packages were not at hand', () => {
    const packages = (
      JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
        packages: Record<string, { version: string; optionalDependencies?: Record<string, string> }>;
      }
    ).packages;
    for (const [path, { optionalDependencies = {} }] of Object.entries(packages)) {
      for (const name of Object.keys(optionalDependencies))
        expect([path, name, packages[`node_modules/${name}`]?.version]).toEqual([
          path,
          name,
          expect.any(String),
        ]);
    }
  });
});

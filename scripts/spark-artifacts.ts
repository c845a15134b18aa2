/** Builds the plugin for Apache Spark: a jar for each series of Spark, and the wheel with both. */
import { cpSync, globSync, mkdirSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');

/** Runs a program in the repository's root, and throws if it fails. */
export type Run = (command: string, args: readonly string[]) => void;

export interface Jars {
  readonly spark4: string;
  readonly spark3: string;
}

export function buildJars(run: Run): Jars {
  run('mvn', ['-q', '-B', '-f', 'spark/pom.xml', 'package']);
  run('mvn', ['-q', '-B', '-f', 'spark/pom.xml', '-Dspark3', 'package']);
  return {
    spark4: only('spark/target/factorflow-spark-*.jar'),
    spark3: only('spark/target/spark-3.5/factorflow-spark-*.jar'),
  };
}

/** Builds the wheel factorflow_spark in `folder`, which is emptied; returns its path. */
export function buildWheel(
  run: Run,
  { jars, folder }: { readonly jars: Jars; readonly folder: string },
): string {
  const inPackage = join(root, 'spark/python/factorflow_spark/jars');
  // setuptools keeps files of earlier builds there.
  for (const old of [inPackage, join(root, 'spark/python/build'), folder])
    rmSync(old, { recursive: true, force: true });
  mkdirSync(inPackage, { recursive: true });
  for (const jar of Object.values(jars) as string[]) cpSync(jar, join(inPackage, basename(jar)));
  run('python3', ['-m', 'pip', 'wheel', '-q', '--no-deps', '-w', folder, join(root, 'spark/python')]);
  return only(join(folder, '*.whl'));
}

function only(pattern: string): string {
  const found = globSync(pattern, { cwd: root });
  if (found.length !== 1) throw new Error(`${pattern} names ${found.length} files, need one`);
  return resolve(root, found[0]);
}

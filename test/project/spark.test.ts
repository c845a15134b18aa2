/** Checks of the plugin for Apache Spark that need no Java: its own tests are in test/spark. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
const pom = textOf('spark/pom.xml');

describe('the plugin for Apache Spark', () => {
  it('has the version of the package, which its workers must have', () => {
    const { version } = JSON.parse(textOf('package.json')) as { version: string };
    expect(pom).toContain(`<artifactId>factorflow-spark</artifactId>\n  <version>${version}</version>`);
  });

  it('has an archive that starts the command of the package', () => {
    const { bin } = JSON.parse(textOf('package.json')) as { bin: { factorflow: string } };
    expect(textOf('spark/make-archive.sh')).toContain(`/node_modules/factorflow/${bin.factorflow}"`);
  });

  it('makes the archive from this checkout, without downloads', () => {
    expect(textOf('spark/make-archive.sh')).not.toMatch(/npm (install|i|exec)\b|npx|factorflow@/);
  });

  it('pins every plugin of Maven, and names no repository', () => {
    const plugins = [...pom.matchAll(/<plugin>(.*?)<\/plugin>/gs)].map((match) => match[1]);
    expect(plugins.length).toBeGreaterThan(3);
    for (const plugin of plugins) expect(plugin).toMatch(/<version>\d+\.\d+(\.\d+)?<\/version>/);
    expect(pom).not.toMatch(/<(plugin)?[rR]epositor/);
  });

  it('takes nothing along: Spark provides what it needs', () => {
    const dependencies = [...pom.matchAll(/<dependency>(.*?)<\/dependency>/gs)].map((match) => match[1]);
    for (const dependency of dependencies) expect(dependency).toMatch(/<scope>(provided|test)<\/scope>/);
  });

  it('names a class that exists where Spark Connect looks for estimators', () => {
    const name = textOf('spark/src/main/resources/META-INF/services/org.apache.spark.ml.Estimator').trim();
    expect(existsSync(join(root, 'spark/src/main/java', `${name.replaceAll('.', '/')}.java`))).toBe(true);
  });

  it('has one idea a file', () => {
    const files = globSync('spark/src/**/*.java', { cwd: root });
    expect(files.length).toBeGreaterThan(20);
    for (const file of files) expect(textOf(file).split('\n').length, file).toBeLessThanOrEqual(300);
  });
});

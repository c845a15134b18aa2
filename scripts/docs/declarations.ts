/**
 * Reads the declarations of a source file as text: names, doc comments and signatures without bodies. Not
 * typedoc or API Extractor, which need TypeScript up to 6.0 (docs/decisions/api-reference.md).
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ParseResult, parse } from '@babel/parser';

type Statement = ParseResult['program']['body'][number];
type Node = {
  readonly start?: number | null;
  readonly end?: number | null;
  readonly leadingComments?: readonly { readonly type: string; readonly value: string }[] | null;
};
type ClassMember = Extract<Statement, { type: 'ClassDeclaration' }>['body']['body'][number];

type Declarator = Extract<Statement, { type: 'VariableDeclaration' }>['declarations'][number];

export interface Declaration {
  readonly name: string;
  readonly kind: 'class' | 'interface' | 'type' | 'function' | 'const';
  /** The doc comment's text; empty without one. */
  readonly doc: string;
  /** The declaration as TypeScript with the comments of members, without bodies. */
  readonly code: string;
  /** The path from the project's root. */
  readonly file: string;
}

export class SourceFile {
  readonly path: string;
  readonly #text: string;
  readonly #root: string;
  readonly #statements: readonly Statement[];

  constructor(root: string, path: string) {
    this.path = path;
    this.#root = root;
    this.#text = readFileSync(join(root, path), 'utf8');
    this.#statements = parse(this.#text, { sourceType: 'module', plugins: ['typescript'] }).program.body;
  }

  /** The names that the file exports from other files, in order. */
  reexports(): { readonly name: string; readonly from: string }[] {
    return this.#statements.flatMap((statement) => {
      if (statement.type !== 'ExportNamedDeclaration' || !statement.source) return [];
      const from = join(dirname(this.path), statement.source.value);
      return statement.specifiers.map((specifier) => ({
        name: nameOf('exported' in specifier ? specifier.exported : specifier),
        from,
      }));
    });
  }

  /** The project file that a name is imported from. */
  importOf(name: string): string | undefined {
    for (const statement of this.#statements) {
      if (statement.type !== 'ImportDeclaration' || !statement.source.value.startsWith('.')) continue;
      if (statement.specifiers.some((specifier) => specifier.local.name === name))
        return join(dirname(this.path), statement.source.value);
    }
    return undefined;
  }

  /** Throws if the file does not declare the name. */
  declaration(name: string): Declaration {
    const found = this.find(name);
    if (found === undefined) throw new Error(`${this.path} declares no ${name}`);
    return found;
  }

  find(name: string): Declaration | undefined {
    for (const statement of this.#statements) {
      const inner = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
      const described = inner && this.#describe(inner as Statement, name);
      if (described) return { name, doc: docOf(statement), file: this.path, ...described };
    }
    return undefined;
  }

  #describe(node: Statement, name: string): Pick<Declaration, 'kind' | 'code'> | undefined {
    if (node.type === 'VariableDeclaration') {
      const [declarator] = node.declarations;
      if (declarator.id.type !== 'Identifier' || declarator.id.name !== name) return undefined;
      return this.#constant(name, declarator);
    }
    if (!('id' in node) || !node.id || !('name' in node.id) || node.id.name !== name) return undefined;
    if (node.type === 'ClassDeclaration') return { kind: 'class', code: this.#classText(node) };
    if (node.type === 'TSInterfaceDeclaration') return { kind: 'interface', code: this.#slice(node) };
    if (node.type === 'TSTypeAliasDeclaration') return { kind: 'type', code: this.#aliasText(node) };
    if (node.type === 'FunctionDeclaration')
      return { kind: 'function', code: `${this.#slice(node, node.body)};` };
    return undefined;
  }

  /** A function's signature, the signatures of an object's functions, or the constant as it is. */
  #constant(name: string, declarator: Declarator): Pick<Declaration, 'kind' | 'code'> {
    const value = plainValue(declarator);
    if (value?.type === 'ArrowFunctionExpression') {
      const signature = this.#slice(value, value.body).replace(/\s*=>$/, '');
      return { kind: 'function', code: `function ${name}${signature};` };
    }
    if (value?.type !== 'ObjectExpression')
      return { kind: 'const', code: `const ${this.#slice(declarator)};` };
    const members = value.properties.map((property) => {
      const { doc, code } = this.declaration(this.#slice(property));
      const comment = doc.includes('\n') ? `/**\n${doc.replaceAll(/^/gm, ' * ')}\n */` : `/** ${doc} */`;
      return `${doc === '' ? '' : `${comment}\n`}${code.replace(/^function /, '')}`;
    });
    return { kind: 'const', code: `const ${name}: {\n${members.map(indented).join('\n')}\n};` };
  }

  /** A type alias; the type of a list's elements is written as their union. */
  #aliasText(node: Extract<Statement, { type: 'TSTypeAliasDeclaration' }>): string {
    return this.#slice(node).replaceAll(/\(typeof (\w+)\)\[number\]/g, (text, list: string) => {
      return this.#unionOf(list) ?? text;
    });
  }

  /** The elements of a constant list as a union of types; undefined for another value. */
  #unionOf(list: string): string | undefined {
    const from = this.importOf(list);
    if (from !== undefined) return new SourceFile(this.#root, from).#unionOf(list);
    for (const statement of this.#statements) {
      const inner = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
      if (inner?.type !== 'VariableDeclaration') continue;
      const [declarator] = inner.declarations;
      const value = plainValue(declarator);
      if (declarator.id.type !== 'Identifier' || declarator.id.name !== list) continue;
      if (value?.type !== 'ArrayExpression') return undefined;
      return value.elements
        .map(
          (element) =>
            element &&
            this.#slice(element).replace(/^\.\.\.(\w+)$/, (_, of: string) => this.#unionOf(of) ?? of),
        )
        .join(' | ');
    }
    return undefined;
  }

  #classText(node: Extract<Statement, { type: 'ClassDeclaration' }>): string {
    const members = node.body.body
      .filter(isPublic)
      .map((member) => commented(member, this.#memberText(member)));
    return `${this.#slice(node, node.body)} {\n${members.map((text) => indented(text)).join('\n')}\n}`;
  }

  #memberText(member: ClassMember): string {
    if (member.type !== 'ClassMethod') return this.#slice(member);
    const head = this.#slice(member, member.body).replace(/^(static )?async \*?/, '$1');
    return `${head};`;
  }

  /**
   * The text of a node, or the part of it before one of its children, without the indentation of its first
   * line.
   */
  #slice(node: Node, before?: Node): string {
    const start = node.start ?? 0;
    const line = this.#text.slice(this.#text.lastIndexOf('\n', start) + 1, start);
    const indentation = /^ */.exec(line)?.[0] ?? '';
    return this.#text
      .slice(start, before?.start ?? node.end ?? undefined)
      .trimEnd()
      .replaceAll(`\n${indentation}`, '\n');
  }
}

/** The value of a constant without `as const` and the like. */
function plainValue({ init }: Declarator) {
  return init?.type === 'TSAsExpression' || init?.type === 'TSSatisfiesExpression' ? init.expression : init;
}

function isPublic(member: ClassMember): boolean {
  const { accessibility = undefined } = 'accessibility' in member ? member : {};
  return !/Private|StaticBlock/.test(member.type) && (accessibility ?? 'public') === 'public';
}

function nameOf(node: { readonly type: string; readonly name?: unknown; readonly value?: unknown }): string {
  return String(node.name ?? node.value);
}

function lastComment(node: Node): string | undefined {
  const comment = node.leadingComments?.at(-1);
  return comment?.type === 'CommentBlock' && comment.value.startsWith('*') ? comment.value : undefined;
}

/** A doc comment without its stars. */
function docOf(node: Node): string {
  const text = (lastComment(node) ?? '').slice(1);
  return text.replaceAll(/^\s*\* ?|[^\S\n]+$/gm, '').trim();
}

/** Code after its doc comment, both without indentation. */
function commented(node: Node, code: string): string {
  const comment = lastComment(node);
  if (comment === undefined) return code;
  return `/*${comment.replaceAll(/\n\s*(?=\*)/g, '\n ').replace(/\n\s*$/, '\n ')}*/\n${code}`;
}

function indented(text: string): string {
  return text.replaceAll(/^/gm, '  ');
}

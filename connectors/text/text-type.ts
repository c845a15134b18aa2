/** Types of the columns of text, narrow to wide. */
export const textTypes = ['int32', 'int64', 'float32', 'float64', 'utf8'] as const;
export type TextType = (typeof textTypes)[number];

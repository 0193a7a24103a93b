<?php

declare(strict_types=1);

namespace Mayfly\Tests\Unit;

use Mayfly\Tag;
use PHPUnit\Framework\TestCase;

final class TagTest extends TestCase
{
    public function testPartsAreJoinedByColons(): void
    {
        self::assertSame('news:5', Tag::of('news', 5));
        self::assertSame('author:7:list', Tag::of('author', 7, 'list'));
    }

    /**
     * @return iterable<string, array{string, string}>
     */
    public function texts(): iterable
    {
        yield 'an ordinary tag stays' => ['news:5', 'news:5'];
        yield 'spaces separate tags' => ['two words', 'two%20words'];
        yield 'so do commas' => ['a,b', 'a%2Cb'];
        yield 'line ends would begin a field' => ["a\r\nSet-Cookie: b", 'a%0D%0ASet-Cookie:%20b'];
        yield 'other letters' => ['größe', 'gr%C3%B6%C3%9Fe'];
        yield 'quotation marks' => ['"a"', '%22a%22'];
        yield 'the rest of ASCII stays' => ['!#$%&\'()*+-./:;<=>?@[\\]^_`{|}~', '!#$%&\'()*+-./:;<=>?@[\\]^_`{|}~'];
    }

    /**
     * @dataProvider texts
     */
    public function testEachTextIsMadeATagThatStays(string $text, string $tag): void
    {
        self::assertSame($tag, Tag::encode($text));
        self::assertSame($tag, Tag::encode($tag));
    }

    public function testATextThatIsTooLongKeepsItsBeginning(): void
    {
        $text = str_repeat('é', 600);
        $tag = Tag::encode($text);
        self::assertLessThanOrEqual(Tag::MAX_BYTES, strlen($tag));
        self::assertStringStartsWith('%C3%A9%C3%A9', $tag);
        self::assertNotSame($tag, Tag::encode($text . 'x'));
        self::assertSame(Tag::MAX_BYTES, strlen(Tag::encode(str_repeat('x', Tag::MAX_BYTES))));
    }

    public function testNothingIsNoTag(): void
    {
        $this->expectException(\InvalidArgumentException::class);
        Tag::encode('');
    }
}

<?php

// What there is to read when the site is new.

return [
    'sections' => [
        'river' => ['River', 'What the water brings, and what it takes.'],
        'town' => ['Town', 'Between the bridge and the station.'],
        'culture' => ['Culture', 'Music, books and the cinema at the old mill.'],
    ],
    'authors' => ['Ines Albrecht', 'Peter Novak', 'Mira Sahin'],
    // Section, author, hours since it was published (null: a draft), title, lead, text.
    'articles' => [
        ['culture', 3, 200, 'The library opens on Sundays', 'From October on, until six.', 'The reading room was so full last winter that people read on the stairs.'],
        ['town', 2, 180, 'Thirty trees for the station square', 'They come in November.', 'Linden trees, because bees like them, and because they were there before the car park.'],
        ['river', 1, 160, 'Old maps show another bend', 'The river has moved by forty metres.', 'The oldest map is of 1780. Nobody had laid it over the newest one.'],
        ['culture', 3, 140, 'The mill shows silent films', 'With a piano, as it should be.', 'The piano is from the school. It was tuned twice.'],
        ['town', 1, 120, 'A bus for the new quarter', 'Every twenty minutes.', 'The line goes by way of the hospital. The stop at the school comes in spring.'],
        ['river', 2, 100, 'The weir gets a stair for fish', 'Salmon were last seen here in 1911.', 'The stair has thirty steps, each as high as a hand.'],
        ['town', 3, 80, 'Market moves to Saturday', 'On trial until Christmas.', 'Most of the stalls had asked for it.'],
        ['culture', 1, 60, 'A choir without an audition', 'Whoever comes may sing.', 'They meet on Mondays at seven, in the hall behind the library.'],
        ['river', 2, 40, 'The ferry sails until midnight', 'Two more crossings each evening.', 'The town pays for the trial. Bicycles travel free after eight.'],
        ['town', 2, 30, 'Lamps on the bridge are swept', 'Again.', 'A mayfly does not eat in its day in the air: it has no mouth to do so. There are very many of them.'],
        ['river', 1, 20, 'First swarm of the year', 'Towards nine, the air above the weir turned white.', 'The anglers had been waiting for it since Sunday.'],
        ['culture', 3, 10, 'A novel about the bridge', 'Its author lives beside it.', 'She wrote it in the mornings, before the traffic.'],
        ['town', 1, null, 'What the council decides on Thursday', 'A draft.', 'Nobody reads this yet.'],
        ['river', 2, null, 'Low water in August', 'A draft as well.', 'Nobody reads this either.'],
    ],
    'comments' => [
        [11, 'Old Peter', 'Same week as in 1987.'],
        [11, 'Ada', 'We stood on the bridge with the children.'],
        [9, 'Jan', 'At last.'],
    ],
];
